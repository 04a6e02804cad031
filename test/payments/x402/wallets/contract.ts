/** Contracts that deploy contract wallets before their first payment, and the code of test contracts. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { concat, type Hex } from 'viem';

/**
 * Deploys the code after a salt of 32 bytes by CREATE2. Anvil has this contract from the first block, like most chains.
 */
export const FACTORY: Hex = '0x4e59b44847b379578588920cA78FbF26c0B4956C';
/** Facilitators use it to simulate two successive calls. */
export const MULTICALL3: Hex = '0xcA11bde05977b3631167028862bE2a173976CA11';
/** The code of a compiled test contract. */
export const runtimeOf = (name: string): Hex =>
  JSON.parse(readFileSync(join(import.meta.dirname, '../../drivers/evm', `${name}.json`), 'utf8')).runtime;

/**
 * Assembles a wallet (ERC-1271) by hand. It puts the answer of a condition on the stack. If the answer is 0, an invalid
 * instruction burns all gas. Otherwise the wallet returns the value that accepts a signature.
 */
export const walletThatAcceptsIf = (condition: Hex): Hex => {
  const target = (condition.length - 2) / 2 + 4;
  return concat([
    condition,
    `0x60${target.toString(16).padStart(2, '0')}57fe`, // PUSH1 target, JUMPI, INVALID
    '0x5b631626ba7e60e01b5f5260205ff3', // JUMPDEST, PUSH4 magic, PUSH1 224, SHL, PUSH0, MSTORE, PUSH1 32, PUSH0, RETURN
  ]);
};
