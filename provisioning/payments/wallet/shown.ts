/** Finishes payouts whose transaction their chain shows for good. */
import type { Database } from '../../../entities/database/database.ts';
import type { Actor } from '../../../entities/history/audit.ts';
import { LIST_BROADCAST, type Payout } from '../../../entities/payments/payout.ts';
import { FINAL_DEPTH } from '../chains/look.ts';
import type { ChainNode, PaymentDriver } from '../drivers/driver.ts';
import { finishPayout } from './payouts.ts';

/**
 * FINAL: its chain has it for good. WAITING: not yet. WRONG: the transaction does not pay the sum of its payouts to the
 * address. UNKNOWN: no chain tells.
 */
export type Shown = 'FINAL' | 'WAITING' | 'WRONG' | 'UNKNOWN';

/** Asks the chains for the sent payouts, and finishes those that are final. A chain that does not answer is UNKNOWN. */
export async function finishShown(
  db: Database,
  drivers: readonly PaymentDriver[],
  actor: Actor,
  signal: AbortSignal,
): Promise<{ payout: Payout; shown: Shown }[]> {
  const readers = drivers.flatMap(({ chains = [] }) => chains);
  const asked = [];
  for (const payout of await LIST_BROADCAST.all(db)) {
    const reader = readers.find(({ network }) => network === payout.network);
    const shown =
      (await reader?.nodes.ask(signal, (node) => shownBy(node, payout, signal)).catch(() => undefined)) ?? 'UNKNOWN';
    if (shown === 'FINAL') await db.transaction((tx) => finishPayout(tx, payout.id, actor));
    asked.push({ payout, shown });
  }
  return asked;
}

async function shownBy(
  node: ChainNode,
  payout: Payout & { unitsTogether: string },
  signal: AbortSignal,
): Promise<Shown> {
  if (!node.heightOf) return 'UNKNOWN';
  const height = await node.heightOf(payout.txId!, signal);
  if (typeof height !== 'number') return 'WAITING';
  const final = (await node.finalHeight?.(signal)) ?? (await node.head(signal)).height - FINAL_DEPTH;
  if (height > final) return 'WAITING';
  const { address, coin, txId, unitsTogether } = payout;
  const block = await node.block(height, async () => new Map([[address.toLowerCase(), address]]), signal);
  // One output may pay several payouts, and several may pay one.
  const outputs = block.payments.filter((paid) => paid.txId === txId && paid.address === address && paid.coin === coin);
  const paid = outputs.reduce((sum, { units }) => sum + units, 0n);
  return paid === BigInt(unitsTogether) ? 'FINAL' : 'WRONG';
}
