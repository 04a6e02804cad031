// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// A contract wallet (ERC-1271) of one owner, whose address is in its first slot. Without a constructor, its runtime code
/// can be placed anywhere. Its signature is the owner's with an extra byte, which no key would produce.
contract ContractWallet {
    address public owner;

    function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4) {
        if (signature.length != 66) return 0xffffffff;
        bytes32 r = bytes32(signature[0:32]);
        bytes32 s = bytes32(signature[32:64]);
        return ecrecover(digest, uint8(signature[64]), r, s) == owner ? bytes4(0x1626ba7e) : bytes4(0xffffffff);
    }
}
