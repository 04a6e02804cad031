/** A payments file with x402 only. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Hex } from 'viem';

/** An address without a known key, like that of an offline wallet. */
export const PAY_TO: Hex = '0x5117aced5117aced5117aced5117aced5117aced';
/** The key of the first anvil account, which has 10,000 ether. */
const GAS_KEY = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80';

/** Writes a file that only its owner can read. */
export function secretFileIn(folder: string, name: string, content: string): string {
  const file = join(folder, name);
  writeFileSync(file, content);
  chmodSync(file, 0o600);
  return file;
}

/** @param settings settings of x402 that replace the defaults */
export function paymentsFileIn(folder: string, rpcUrl: string, settings: object = {}): string {
  const settler = 'facilitatorUrl' in settings ? {} : { gasKeyFile: secretFileIn(folder, 'gas-key', GAS_KEY) };
  const x402 = { network: 'base', payTo: PAY_TO, rpcUrls: [rpcUrl], ...settler, ...settings };
  return secretFileIn(folder, 'payments.json', JSON.stringify({ gateways: [], x402 }));
}
