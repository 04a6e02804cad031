/** Keeps the transactions of payouts that the operator sent. */
import type { Database } from '../../../entities/database/database.ts';
import { find, update } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { ApiError, refuse } from '../../../entities/errors.ts';
import { type Actor, OPERATOR_ACCOUNT } from '../../../entities/history/audit.ts';
import { record } from '../../../entities/history/record.ts';
import { Payment } from '../../../entities/payments/payment.ts';
import { LOCK_TOUCHED, Payout, SUM_NAMING } from '../../../entities/payments/payout.ts';
import type { PaymentDriver } from '../drivers/driver.ts';
import { bookCancelled } from './cancel.ts';
import { move, withPayouts } from './payouts.ts';
import { isSameTxId, paysAlso, type Seen, see } from './shown.ts';

/** The transaction of a payout. */
export interface SentPayout {
  id: string;
  txId: string;
}

/** The drivers that tell whether the chain has dropped a first transaction. */
export interface Replacing {
  drivers: readonly PaymentDriver[];
  signal: AbortSignal;
}

/** An earlier transaction of a payout, as its chain shows it. */
interface Earlier {
  txId: string;
  seen: Seen;
}

/**
 * Keeps the transactions of exported payouts, all or none. It books a cancelled one again, because its coins have left.
 * @param replacing the operator says that a second transaction replaces a first one that never pays. Absent: it is refused
 * @throws ApiError not_found, or unavailable if no node answers. Or validation_failed if a payout was not exported or is final, or
 * a node shows its first transaction
 */
export async function importSent(
  db: Database,
  sent: readonly SentPayout[],
  actor: Actor,
  replacing?: Replacing,
): Promise<Payout[]> {
  const txIds = new Map<string, string>();
  for (const { id, txId } of sent) {
    if (!isSameTxId(txIds.get(id) ?? txId, txId))
      throw refuse('txId', 'wrong_value', `The list names two transactions of the payout ${id}.`);
    txIds.set(id, txId);
  }
  const earlier = await findEarlier(db, txIds, replacing);
  return db.transaction(async (tx) => {
    const replaced: Payout[] = [];
    const cancelled: Payout[] = [];
    const returning: Payout[] = [];
    const kept = await withPayouts(tx, [...txIds.keys()], async (payout) => {
      const txId = txIds.get(payout.id)!;
      if (payout.txId !== null && isSameTxId(payout.txId, txId)) return payout;
      const isSent = payout.status === 'BROADCAST';
      if (isSent && payout.txId !== earlier.get(payout.id)?.txId)
        throw refuse('txId', 'wrong_state', `The payout ${payout.id} has got another transaction meanwhile.`);
      if (isSent) replaced.push(payout);
      const moved = await (isSent ? replace(tx, payout, txId, actor) : move(tx, payout, 'BROADCAST', actor, { txId }));
      (payout.status === 'CANCELLED' ? cancelled : returning).push(moved);
      return moved;
    });
    for (const payout of replaced) await requireUnpaid(tx, payout, earlier.get(payout.id)!);
    const paymentIds = kept.flatMap(({ paymentId }) => paymentId ?? []);
    const accountIds = cancelled.map(({ accountId }) => accountId);
    for (const locking of LOCK_TOUCHED) await locking.all(tx, [paymentIds, accountIds]);
    for (const payout of cancelled) await bookCancelled(tx, payout);
    for (const payout of returning) await nameReturn(tx, payout, earlier.get(payout.id));
    return kept;
  });
}

/** Asks the chains for the transactions that others replace. @returns them by the payout */
async function findEarlier(
  db: Database,
  txIds: ReadonlyMap<string, string>,
  replacing: Replacing | undefined,
): Promise<ReadonlyMap<string, Earlier>> {
  const earlier = new Map<string, Earlier>();
  for (const [id, txId] of txIds) {
    const payout = await find(db, Payout, { id });
    if (payout?.status !== 'BROADCAST' || isSameTxId(payout.txId!, txId)) continue;
    if (!replacing)
      throw refuse(
        'txId',
        'wrong_state',
        `The payout ${id} has the transaction ${payout.txId}. If that never pays it, import with --replace.`,
      );
    const seen = await see(replacing.drivers, payout, payout.txId!, replacing.signal).catch((fault: Error) => {
      throw new ApiError('unavailable', `The chain must tell about ${payout.txId}. ${fault.message}`, {
        retryAfter: 5,
      });
    });
    earlier.set(id, { txId: payout.txId!, seen });
  }
  return earlier;
}

/** Names the transaction of a payout in its payment, unless another payout has returned that. */
async function nameReturn(tx: Transaction, payout: Payout, replaced?: Earlier): Promise<void> {
  const { paymentId, txId } = payout;
  if (paymentId === null) return;
  const named = replaced && { returnTxId: replaced.txId };
  await update(tx, Payment, { id: paymentId, status: 'RETURNED', ...named }, { returnTxId: txId });
}

async function replace(tx: Transaction, payout: Payout, txId: string, actor: Actor): Promise<Payout> {
  const { id, network } = payout;
  const replacedTxIds = [...new Set([...payout.replacedTxIds, payout.txId!])].filter((one) => !isSameTxId(one, txId));
  await update(tx, Payout, { id }, { txId, replacedTxIds });
  const data = { network, txId, replacedTxId: payout.txId };
  await record(tx, OPERATOR_ACCOUNT, id, { type: 'payout.broadcast', actor, data });
  return { ...payout, txId, replacedTxIds };
}

/** @throws ApiError validation_failed if the earlier transaction pays the payout, or may do so */
async function requireUnpaid(tx: Transaction, payout: Payout, { txId, seen }: Earlier): Promise<void> {
  const named = (await SUM_NAMING.first(tx, [txId, payout.coin, payout.address]))!;
  if (seen.state === 'ANNOUNCED' || paysAlso(seen, payout, BigInt(named.units)))
    throw refuse('txId', 'wrong_state', `A node shows the first transaction ${txId} of the payout ${payout.id}.`);
}
