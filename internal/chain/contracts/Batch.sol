// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// Makes several calls in one transaction, all or none.
contract Batch {
    function run(address[] calldata targets, bytes[] calldata calls) external {
        for (uint256 i = 0; i < targets.length; i++) {
            (bool ok, bytes memory answer) = targets[i].call(calls[i]);
            if (!ok) {
                assembly {
                    revert(add(answer, 32), mload(answer))
                }
            }
        }
    }
}
