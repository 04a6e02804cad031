/** Reads the coins that addresses have at a block. */
import type { Call, JsonRpc } from '../json-rpc.ts';

/** balanceOf(address) */
const BALANCE_OF = '0x70a08231';

/** The units that these addresses have together at the height, by the code of the coin. */
export async function balancesAt(
  rpc: JsonRpc,
  { native, tokens }: { native: string | undefined; tokens: ReadonlyMap<string, { code: string }> },
  height: number,
  addresses: readonly string[],
  signal: AbortSignal,
): Promise<Map<string, bigint>> {
  const at = `0x${height.toString(16)}`;
  const assets: { code: string; contract?: string }[] = [...tokens].map(([contract, { code }]) => ({ code, contract }));
  if (native) assets.push({ code: native });
  const found = new Map<string, bigint>();
  for (const { code, contract } of assets) {
    const calls = addresses.map(
      (address): Call =>
        contract
          ? ['eth_call', { to: contract, data: BALANCE_OF + address.slice(2).toLowerCase().padStart(64, '0') }, at]
          : ['eth_getBalance', address, at],
    );
    const units = await rpc.batch<string>(signal, calls);
    found.set(
      code,
      units.reduce((sum, one) => sum + BigInt(one), 0n),
    );
  }
  return found;
}
