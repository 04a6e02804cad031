/** Moves of payouts, each in one transaction with its transfers, its event and its audit entry. */

import type { Database } from '../../../entities/database/database.ts';
import { find, insert, lock, update } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { ApiError, refuse } from '../../../entities/errors.ts';
import { type Actor, OPERATOR_ACCOUNT } from '../../../entities/history/audit.ts';
import { record } from '../../../entities/history/record.ts';
import { expression, transition } from '../../../entities/history/transition.ts';
import { isId, newId } from '../../../entities/ids.ts';
import { exactJson } from '../../../entities/json.ts';
import { usdFromMicros } from '../../../entities/money.ts';
import {
  available,
  Balance,
  EXCHANGE,
  lockOperator,
  PAYOUTS,
  type Posting,
  post,
  SUSPENSE,
} from '../../../entities/payments/ledger.ts';
import { costOf, FIND_HOLDING, FIND_PAYABLE_UNITS, Movement } from '../../../entities/payments/movement.ts';
import { type PaidOutPart, PUT_BACK, payableMicros, takeOut } from '../../../entities/payments/payable.ts';
import { gatewayOf, movePayment, Payment } from '../../../entities/payments/payment.ts';
import {
  FIND_OTHER_PAYOUT,
  LIST_UNSENT,
  PAYOUT_LIFECYCLE,
  Payout,
  type PayoutStatus,
} from '../../../entities/payments/payout.ts';
import { type AccountPosting, FINAL_BY_NOW, keepEarned, requireReported } from '../suspense.ts';
import { isOverdrawn } from './movements.ts';

export type RequestedPayout = Omit<
  Payout,
  'id' | 'status' | 'takenFrom' | 'txId' | 'replacedTxIds' | 'exportedAt' | 'createdAt'
>;

/** A transfer of a payout. */
export const posting = (
  { id, coin }: Pick<Payout, 'id' | 'coin'>,
  [debit, credit]: readonly [debit: string, credit: string],
  amountMicros: bigint,
  move: string,
): Posting => ({
  ...{ kind: 'adjustment', debit, credit, amountMicros },
  ...{ externalKey: `${move}:${id}`, description: `Payout in ${coin}` },
});

/**
 * Leaves the top-ups behind a payout the bonuses that they still earn. The money that left counts as never paid.
 * @returns the transfers
 */
export async function keepBonuses(
  tx: Transaction,
  parts: readonly PaidOutPart[],
  key: string,
): Promise<AccountPosting[]> {
  const postings: AccountPosting[] = [];
  const orderNumbers = new Set(parts.flatMap(({ orderNumber }) => orderNumber ?? []));
  for (const orderNumber of [...orderNumbers].toSorted()) {
    const given = { externalKey: `${key}:${orderNumber}`, description: 'Bonus of money that was paid out' };
    postings.push(...(await keepEarned(tx, orderNumber, given)));
  }
  return postings;
}

/** The parts of payments as a payout keeps them. */
export const partsOf = (parts: readonly PaidOutPart[]) =>
  parts.map(({ paymentId, micros }) => ({ paymentId, micros: String(micros) }));

/** The ledger account that the money of a payout is from. */
const originOf = ({ paymentId, accountId }: Pick<Payout, 'paymentId' | 'accountId'>): string =>
  paymentId === null ? available(accountId) : SUSPENSE;

/**
 * Reserves the money of a payout. Requesting it again changes nothing.
 * @throws ApiError insufficient_balance, idempotency_key_reused, or validation_failed if the payment is not unmatched, or its
 * gateway has fewer final coins
 */
export async function requestPayout(tx: Transaction, given: RequestedPayout, actor: Actor): Promise<Payout> {
  const { key, accountId, paymentId, amountMicros, address, coin, network, source, units } = given;
  // Also the operator, so that two payouts do not take the same coins out of a gateway.
  await lockOperator(tx, accountId);
  const known = await find(tx, Payout, { key });
  if (known) {
    const isSame = known.accountId === accountId && known.paymentId === paymentId && known.address === address;
    if (!isSame || known.coin !== coin || (paymentId === null && known.amountMicros !== amountMicros))
      throw new ApiError('idempotency_key_reused');
    return known;
  }
  const payment = paymentId === null ? undefined : (await lock(tx, Payment, { id: paymentId }))!;
  let parts: PaidOutPart[] = [];
  if (payment) {
    if (payment.status !== 'UNMATCHED' || payment.creditedMicros !== amountMicros)
      throw refuse('paymentId', 'wrong_state', 'A payout sends back only an UNMATCHED payment.');
    requireReported(payment);
    await movePayment(tx, payment, 'RETURNED', { finalAt: FINAL_BY_NOW });
  } else {
    const micros = await payableMicros(tx, accountId);
    if (micros < amountMicros) {
      const most = `The account can get ${usdFromMicros(micros)} USD.`;
      throw new ApiError('insufficient_balance', `${most} Payouts leave out bonuses, and payments that are not final.`);
    }
    parts = await takeOut(tx, given);
  }
  const few = refuse('source', 'too_few', `${source} has fewer final coins. Move some there, or name a wallet.`);
  if (source.startsWith('gateway:') && source !== (payment && gatewayOf(payment))) {
    const payable = await FIND_PAYABLE_UNITS.first(tx, [source, coin]);
    if (BigInt(payable!.units) < BigInt(units)) throw few;
  }
  const id = newId('out');
  const takenFrom = partsOf(parts);
  await insert(tx, Payout, { ...given, id, status: 'REQUESTED', takenFrom });
  // The operator may have swept the coins of the payment, which the books have elsewhere then.
  if (await isOverdrawn(tx, source, coin)) throw few;
  const bonuses = await keepBonuses(tx, parts, `payout-bonus:${id}`);
  await post(tx, accountId, posting({ id, coin }, [originOf(given), PAYOUTS], amountMicros, 'payout'), ...bonuses);
  if (paymentId === null) await requireNoDebt(tx, accountId);
  const data = { accountId, paymentId, network, coin, address, units, reason: given.reason };
  await record(tx, OPERATOR_ACCOUNT, id, { type: 'payout.requested', actor, data });
  return (await find(tx, Payout, { id }))!;
}

/** @throws ApiError insufficient_balance if the account has spent a bonus that the payout takes back */
async function requireNoDebt(tx: Transaction, accountId: string): Promise<void> {
  if ((await find(tx, Balance, { accountId }))!.owedMicros === 0n) return;
  const message = 'The payout takes back bonuses that the account has spent. Request a smaller payout.';
  throw new ApiError('insufficient_balance', message);
}

/** Locks the accounts of payouts, and then each payout for the work. @throws ApiError not_found */
export async function withPayouts<T>(
  tx: Transaction,
  ids: readonly string[],
  work: (payout: Payout) => Promise<T>,
): Promise<T[]> {
  const accountIds = new Set<string>();
  for (const id of ids) {
    const payout = isId('out', id) ? await find(tx, Payout, { id }) : undefined;
    if (!payout) throw new ApiError('not_found', `There is no payout ${id}.`);
    accountIds.add(payout.accountId);
  }
  await lockOperator(tx, ...accountIds);
  const results: T[] = [];
  for (const id of ids.toSorted()) results.push(await work((await lock(tx, Payout, { id }))!));
  return results;
}

/** Moves a locked payout, and records that. @throws ApiError validation_failed if its state does not allow it */
export async function move(
  tx: Transaction,
  { id, status, network }: Payout,
  to: PayoutStatus,
  actor: Actor,
  data: { txId?: string; reason?: string } = {},
): Promise<Payout> {
  const { txId } = data;
  const moved = await transition(tx, PAYOUT_LIFECYCLE, id, to, {
    set: { ...(txId !== undefined && { txId }), ...(to === 'EXPORTED' && { exportedAt: expression('now()') }) },
  });
  if (!moved) throw refuse('id', 'wrong_state', `The payout ${id} is ${status} and cannot become ${to}.`);
  const type = `payout.${to.toLowerCase() as Lowercase<PayoutStatus>}` as const;
  await record(tx, OPERATOR_ACCOUNT, id, { type, actor, data: { network, ...data } });
  return moved;
}

/**
 * Gives the money back to where it was, unless the operator may have sent the coins. If another payout has sent the payment back,
 * the payment stays RETURNED. The account `exchange` had paid for the other one, and gets the money.
 */
export async function cancelPayout(tx: Transaction, id: string, reason: string, actor: Actor): Promise<Payout> {
  const [cancelled] = await withPayouts(tx, [id], async (payout) => {
    if (payout.status === 'CANCELLED') return payout;
    const cancelled = await move(tx, payout, 'CANCELLED', actor, { reason });
    const { accountId, paymentId, amountMicros, takenFrom } = payout;
    const payment = paymentId === null ? undefined : await lock(tx, Payment, { id: paymentId });
    const other = payment && (await FIND_OTHER_PAYOUT.first(tx, [payment.id, id]));
    if (other) await update(tx, Payment, { id: payment.id }, { returnTxId: other.txId });
    else if (payment) await movePayment(tx, payment, 'UNMATCHED');
    const parts = await PUT_BACK.all(tx, [exactJson(takenFrom)]);
    const bonuses = await keepBonuses(tx, parts, `payout-bonus-cancel:${id}`);
    const back = posting(payout, [PAYOUTS, other ? EXCHANGE : originOf(payout)], amountMicros, 'payout-cancel');
    await post(tx, accountId, back, ...bonuses);
    return cancelled;
  });
  return cancelled!;
}

/**
 * Marks the requested payouts as exported, and returns them. A payout that is already in a list to sign stays there alone.
 * @param isAgain whether it returns the exported ones without a transaction instead, because their list may be lost. The caller
 * warns the operator, because a list that is not lost would pay them as well
 */
export const exportPayouts = (db: Database, actor: Actor, isAgain = false): Promise<Payout[]> =>
  db.transaction(async (tx) => {
    const unsent = (await LIST_UNSENT.all(tx)).map(({ id }) => id);
    const exported = await withPayouts(tx, unsent, async (payout) => {
      if (payout.status !== (isAgain ? 'EXPORTED' : 'REQUESTED')) return [];
      if (!isAgain) return [await move(tx, payout, 'EXPORTED', actor)];
      const data = { network: payout.network, again: true };
      await record(tx, OPERATOR_ACCOUNT, payout.id, { type: 'payout.exported', actor, data });
      return [payout];
    });
    return exported.flat();
  });

/** Takes the coins of a payout out of its ledger account, because the chain cannot remove its transaction any more. */
export async function finishPayout(tx: Transaction, id: string, actor: Actor): Promise<Payout> {
  const [finished] = await withPayouts(tx, [id], async (payout) => {
    if (payout.status === 'FINAL') return payout;
    const finished = await move(tx, payout, 'FINAL', actor);
    const { accountId, amountMicros, source, coin, units, txId } = payout;
    const holding = await FIND_HOLDING.first(tx, [source, coin]);
    const cost = costOf(holding, BigInt(units)) ?? amountMicros;
    const leaving = cost < amountMicros ? cost : amountMicros;
    await post(
      tx,
      accountId,
      posting(payout, [PAYOUTS, source], leaving, 'payout-final'),
      posting(payout, [PAYOUTS, EXCHANGE], amountMicros - leaving, 'payout-gain'),
      posting(payout, [EXCHANGE, source], cost - leaving, 'payout-loss'),
    );
    const movement = { source, target: PAYOUTS, coin, units, amountMicros: cost, txId: txId!, payoutId: id };
    await insert(tx, Movement, { id: newId('mov'), ...movement });
    return finished;
  });
  return finished!;
}
