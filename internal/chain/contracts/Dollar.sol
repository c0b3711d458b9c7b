// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// A token of six decimals whose holders can sign a transfer that anybody submits
/// (EIP-3009), with the rules for signatures that USDC has. For tests: anybody mints.
contract Dollar {
    string public constant symbol = "USDC";
    string public constant name = "USD Coin";
    string public constant version = "2";
    uint8 public constant decimals = 6;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);
    event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce);

    bytes32 constant TRANSFER = keccak256(
        "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );
    bytes32 constant RECEIVE = keccak256(
        "ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );
    bytes32 constant CANCEL = keccak256("CancelAuthorization(address authorizer,bytes32 nonce)");

    mapping(address => uint256) public balanceOf;
    /// True for an authorization that was used, and for one that was cancelled.
    mapping(address => mapping(bytes32 => bool)) public authorizationState;

    struct Authorization {
        address from;
        address to;
        uint256 value;
        uint256 validAfter;
        uint256 validBefore;
        bytes32 nonce;
    }

    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                keccak256(bytes(name)),
                keccak256(bytes(version)),
                block.chainid,
                address(this)
            )
        );
    }

    function mint(address to, uint256 value) external {
        balanceOf[to] += value;
        emit Transfer(address(0), to, value);
    }

    function transfer(address to, uint256 value) external returns (bool) {
        move(msg.sender, to, value);
        return true;
    }

    function transferWithAuthorization(
        address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s
    ) external {
        use(TRANSFER, Authorization(from, to, value, validAfter, validBefore, nonce), v, r, s);
    }

    function receiveWithAuthorization(
        address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s
    ) external {
        require(to == msg.sender, "caller must be the payee");
        use(RECEIVE, Authorization(from, to, value, validAfter, validBefore, nonce), v, r, s);
    }

    function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s) external {
        require(!authorizationState[authorizer][nonce], "authorization is used or canceled");
        require(recover(keccak256(abi.encode(CANCEL, authorizer, nonce)), v, r, s) == authorizer, "invalid signature");
        authorizationState[authorizer][nonce] = true;
        emit AuthorizationCanceled(authorizer, nonce);
    }

    /// Who signed a message of this contract's: for tests that compare.
    function recover(bytes32 message, uint8 v, bytes32 r, bytes32 s) public view returns (address signer) {
        require(
            uint256(s) <= 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0, "invalid signature 's' value"
        );
        require(v == 27 || v == 28, "invalid signature 'v' value");
        signer = ecrecover(keccak256(abi.encodePacked("\x19\x01", DOMAIN_SEPARATOR(), message)), v, r, s);
        require(signer != address(0), "invalid signature");
    }

    function use(bytes32 kind, Authorization memory a, uint8 v, bytes32 r, bytes32 s) internal {
        require(block.timestamp > a.validAfter, "authorization is not yet valid");
        require(block.timestamp < a.validBefore, "authorization is expired");
        require(!authorizationState[a.from][a.nonce], "authorization is used or canceled");
        bytes32 message = keccak256(abi.encode(kind, a.from, a.to, a.value, a.validAfter, a.validBefore, a.nonce));
        require(recover(message, v, r, s) == a.from, "invalid signature");
        authorizationState[a.from][a.nonce] = true;
        emit AuthorizationUsed(a.from, a.nonce);
        move(a.from, a.to, a.value);
    }

    function move(address from, address to, uint256 value) internal {
        require(balanceOf[from] >= value, "transfer amount exceeds balance");
        balanceOf[from] -= value;
        balanceOf[to] += value;
        emit Transfer(from, to, value);
    }
}
