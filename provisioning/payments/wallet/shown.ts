/** Asks the chains for the transactions of payouts, and finishes payouts whose transaction their chain shows for good. */
import type { Database } from '../../../entities/database/database.ts';
import type { Queryable } from '../../../entities/database/transaction.ts';
import type { Actor } from '../../../entities/history/audit.ts';
import { LIST_BROADCAST, LIST_REPLACED, type Payout } from '../../../entities/payments/payout.ts';
import { FINAL_DEPTH } from '../chains/look.ts';
import type { ChainNode, PaymentDriver } from '../drivers/driver.ts';
import { finishPayout } from './payouts.ts';

/** UNKNOWN: no driver can tell. GONE: the node has no such transaction. ANNOUNCED: it is in no block. MINED: it is in a block. */
export type Seen = { state: 'UNKNOWN' | 'GONE' | 'ANNOUNCED' } | { state: 'MINED'; units: bigint; isFinal: boolean };
type Target = Pick<Payout, 'network' | 'address' | 'coin'>;

/** Asks a node for a transaction, and for the units that it pays to the address. @throws if no node answers */
export async function see(
  drivers: readonly PaymentDriver[],
  target: Target,
  txId: string,
  signal: AbortSignal,
): Promise<Seen> {
  const reader = drivers.flatMap(({ chains = [] }) => chains).find(({ network }) => network === target.network);
  return (await reader?.nodes.ask(signal, (node) => seenBy(node, target, txId, signal))) ?? { state: 'UNKNOWN' };
}

async function seenBy(
  node: ChainNode,
  { address, coin }: Target,
  txId: string,
  signal: AbortSignal,
): Promise<Seen | undefined> {
  const height = await node.heightOf?.(txId, signal);
  if (typeof height !== 'number')
    return node.heightOf && { state: height === null ? ('ANNOUNCED' as const) : ('GONE' as const) };
  const final = (await node.finalHeight?.(signal)) ?? (await node.head(signal)).height - FINAL_DEPTH;
  const block = await node.block(height, async () => new Map([[address.toLowerCase(), address]]), signal);
  // One output may pay several payouts, and several may pay one.
  const outputs = block.payments.filter(
    (paid) => isSameTxId(paid.txId, txId) && paid.address === address && paid.coin === coin,
  );
  return {
    state: 'MINED',
    units: outputs.reduce((sum, { units }) => sum + units, 0n),
    isFinal: height <= final,
  };
}

/** Chains spell transactions in any case. */
export const isSameTxId = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase();

/**
 * FINAL: its chain has it for good. WAITING: not yet. WRONG: the transaction does not pay the sum of its payouts to the
 * address. UNKNOWN: no driver can tell. SILENT: no node answered.
 */
export type Shown = 'FINAL' | 'WAITING' | 'WRONG' | 'UNKNOWN' | 'SILENT';

/** Asks the chains for the sent payouts, and finishes those that are final. SILENT ones have a sentence with the fault. */
export async function finishShown(
  db: Database,
  drivers: readonly PaymentDriver[],
  actor: Actor,
  signal: AbortSignal,
): Promise<{ payout: Payout; shown: Shown; fault?: string }[]> {
  const asked = [];
  for (const payout of await LIST_BROADCAST.all(db)) {
    const seen = await see(drivers, payout, payout.txId!, signal).catch((fault: Error) => fault);
    const shown = shownOf(seen, BigInt(payout.unitsTogether));
    if (shown === 'FINAL') await db.transaction((tx) => finishPayout(tx, payout.id, actor));
    asked.push({ payout, shown, ...(seen instanceof Error && { fault: seen.message }) });
  }
  return asked;
}

function shownOf(seen: Seen | Error, unitsTogether: bigint): Shown {
  if (seen instanceof Error) return 'SILENT';
  if (seen.state === 'UNKNOWN') return 'UNKNOWN';
  if (seen.state !== 'MINED' || !seen.isFinal) return 'WAITING';
  return seen.units === unitsTogether ? 'FINAL' : 'WRONG';
}

/** Whether a transaction pays a payout beside those payouts that name it. */
export const paysAlso = (seen: Seen, { units }: Pick<Payout, 'units'>, unitsTogether: bigint): boolean =>
  seen.state === 'MINED' && seen.units - unitsTogether >= BigInt(units);

/**
 * TWICE: the chain has the replaced transaction, and it pays the payout as well. ANNOUNCED: it may still do so. GONE: it does not.
 * UNKNOWN: no driver can tell. Or a block has it, and its driver sees no coins, as in the call of a contract. SILENT: no node
 * answered.
 */
export type Replaced = 'TWICE' | 'ANNOUNCED' | 'GONE' | 'UNKNOWN' | 'SILENT';

/** Asks the chains for the replaced transactions of payouts. */
export async function askReplaced(
  db: Queryable,
  drivers: readonly PaymentDriver[],
  signal: AbortSignal,
): Promise<{ payout: Payout; txId: string; replaced: Replaced; isMined: boolean; fault?: string }[]> {
  const asked = [];
  for (const payout of await LIST_REPLACED.all(db)) {
    const { replacedTxId: txId, unitsTogether } = payout;
    const seen = await see(drivers, payout, txId, signal).catch((fault: Error) => fault);
    const replaced = replacedOf(seen, payout, BigInt(unitsTogether));
    const isFault = seen instanceof Error;
    asked.push({
      ...{ payout, txId, replaced, isMined: !isFault && seen.state === 'MINED' },
      ...(isFault && { fault: seen.message }),
    });
  }
  return asked;
}

function replacedOf(seen: Seen | Error, payout: Pick<Payout, 'units'>, unitsTogether: bigint): Replaced {
  if (seen instanceof Error) return 'SILENT';
  if (paysAlso(seen, payout, unitsTogether)) return 'TWICE';
  if (seen.state !== 'MINED') return seen.state;
  return seen.units > 0n ? 'GONE' : 'UNKNOWN';
}

const MEANING: Record<Replaced, string> = {
  TWICE: 'The chain has both, and paid it twice.',
  ANNOUNCED: 'A node still announces the first one, which may pay it again.',
  GONE: 'The first one does not pay it.',
  UNKNOWN: 'No chain tells whether the first one pays it. Look at it yourself.',
  SILENT: 'No node answered about the first one.',
};
/** For UNKNOWN, if a block has the first one. */
const MEANING_OF_MINED =
  'A block has the first one, and the service sees no coins to the address in it. ' +
  'A contract may have sent them. Look at the address on the chain. ' +
  'If the first one has paid, send no second one, and import the first one again by --replace.';
/** One line for the operator about a replaced transaction. */
export function lineOfReplaced(asked: Awaited<ReturnType<typeof askReplaced>>[number]): string {
  const { payout, txId, replaced, isMined, fault = '' } = asked;
  const meaning = replaced === 'UNKNOWN' && isMined ? MEANING_OF_MINED : `${MEANING[replaced]} ${fault}`.trimEnd();
  return `${replaced.padEnd(7)} ${payout.id}: ${payout.txId} replaced ${txId}. ${meaning}`;
}
