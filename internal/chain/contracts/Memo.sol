// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// A token whose transfers can carry a reference of 32 bytes, in the manner of TIP-20.
/// For tests: anybody mints.
contract Memo {
    string public constant symbol = "MEMO";
    uint8 public constant decimals = 6;

    event Transfer(address indexed from, address indexed to, uint256 amount);
    event TransferWithMemo(address indexed from, address indexed to, uint256 amount, bytes32 indexed memo);

    mapping(address => uint256) public balanceOf;

    function mint(address to, uint256 amount) external {
        balanceOf[to] += amount;
        emit Transfer(address(0), to, amount);
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        move(to, amount);
        return true;
    }

    function transferWithMemo(address to, uint256 amount, bytes32 memo) external {
        move(to, amount);
        emit TransferWithMemo(msg.sender, to, amount, memo);
    }

    function move(address to, uint256 amount) internal {
        require(balanceOf[msg.sender] >= amount, "transfer amount exceeds balance");
        balanceOf[msg.sender] -= amount;
        balanceOf[to] += amount;
        emit Transfer(msg.sender, to, amount);
    }
}
