// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// Calls itself USDC, moves nothing, and emits whatever it is told to.
contract Fake {
    string public constant symbol = "USDC";
    string public constant name = "USD Coin";
    uint8 public constant decimals = 6;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event TransferWithMemo(address indexed from, address indexed to, uint256 amount, bytes32 indexed memo);
    event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);

    function authorizationState(address, bytes32) external pure returns (bool) {
        return true;
    }

    function move(address from, address to, uint256 value) external {
        emit Transfer(from, to, value);
    }

    function carry(address from, address to, uint256 value, bytes32 memo) external {
        emit TransferWithMemo(from, to, value, memo);
    }

    function useUp(address authorizer, bytes32 nonce) external {
        emit AuthorizationUsed(authorizer, nonce);
    }

    function pretend(address from, address to, uint256 value, bytes32 nonce) external {
        emit AuthorizationUsed(from, nonce);
        emit Transfer(from, to, value);
        emit TransferWithMemo(from, to, value, nonce);
    }
}
