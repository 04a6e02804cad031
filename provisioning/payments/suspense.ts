/**
 * Moves of a payment into suspense and out of it, each with its transfers. The caller holds the locks of the account and of
 * the payment.
 */
import { exists, update } from '../../entities/database/table.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { refuse } from '../../entities/errors.ts';
import { OPERATOR_ACCOUNT, SYSTEM } from '../../entities/history/audit.ts';
import type { EventType } from '../../entities/history/event.ts';
import { recordAll } from '../../entities/history/record.ts';
import { expression } from '../../entities/history/transition.ts';
import { newId } from '../../entities/ids.ts';
import { available, BONUS, owed, type Posting, postAll, SUSPENSE } from '../../entities/payments/ledger.ts';
import { gatewayOf, isInBalance, movePayment, type Payment } from '../../entities/payments/payment.ts';
import { earnedMicros, LOCK_PAID_TOP_UP, TopUp } from '../../entities/payments/top-up.ts';
import { startTask } from '../../entities/tasks/start.ts';
import { x402Task } from './task.ts';
import { isOverdrawn } from './wallet/movements.ts';

/** The least payment about which the operator decides. Smaller ones would cost a stranger nothing, and the operator much. */
export const UNMATCHED_MIN_USD = 1;

export type AccountPosting = Posting & { accountId: string };

/** A transfer of a payment. @param kind `topup` for the credit of a top-up, or `adjustment` for later transfers */
const posting = (
  { accountId, orderNumber, coin, mode }: Payment,
  kind: 'topup' | 'adjustment',
  [debit, credit]: readonly [debit: string, credit: string],
  amountMicros: bigint,
  externalKey: string,
): AccountPosting => ({
  accountId,
  kind,
  debit,
  credit,
  amountMicros,
  externalKey,
  ...(orderNumber !== null && { orderNumber }),
  description: mode === 'X402' ? 'Payment by x402' : `Top-up in ${coin}`,
});

/** The transfer of a payment into the balance. */
export const creditPosting = (payment: Payment, micros: bigint): AccountPosting =>
  posting(payment, 'topup', [gatewayOf(payment), available(payment.accountId)], micros, payment.externalKey);

/** The transfer of a payment into suspense. */
export const suspensePosting = (payment: Payment, micros: bigint): AccountPosting =>
  posting(payment, 'topup', [gatewayOf(payment), SUSPENSE], micros, payment.externalKey);

/**
 * Reverses a credited payment that its chain has removed. The account owes the payment and its bonus, and pays with its
 * money. Orders and renewals of the account wait until it owes nothing.
 * @returns it with its new state
 */
export async function reversePayment(tx: Transaction, payment: Payment): Promise<Payment> {
  const { accountId, creditedMicros } = payment;
  const set = { reversals: payment.reversals + 1, finalAt: null };
  const reversed = await movePayment(tx, payment, 'REVERSED', set);
  const way = [owed(accountId), SUSPENSE] as const;
  const removed = posting(payment, 'adjustment', way, creditedMicros, `reverse:${reversalKey(reversed)}`);
  await postAll(tx, [{ ...removed, description: 'Removed by its chain' }, ...(await adjustTopUp(tx, reversed))]);
  await tell(tx, payment, 'payment.reversed');
  return reversed;
}

/**
 * Credits a reversed payment again that is back on its chain, and has confirmed. A written-off one that was never credited goes
 * into suspense again.
 */
export async function restorePayment(tx: Transaction, payment: Payment): Promise<void> {
  const { accountId, status, creditedMicros } = payment;
  if (payment.reversals === 0) {
    const unmatched = await movePayment(tx, payment, 'UNMATCHED', { missingSince: null });
    const way = [gatewayOf(payment), SUSPENSE] as const;
    const back = posting(unmatched, 'adjustment', way, creditedMicros, onceMore('suspend', payment));
    await postAll(tx, [{ ...back, description: 'Back on its chain' }]);
    return tell(tx, payment, 'payment.unmatched');
  }
  const restored = await movePayment(tx, payment, 'CREDITED', { missingSince: null });
  const way = [status === 'WRITTEN_OFF' ? gatewayOf(payment) : SUSPENSE, available(accountId)] as const;
  const back = posting(payment, 'adjustment', way, creditedMicros, `restore:${reversalKey(payment)}`);
  await postAll(tx, [{ ...back, description: 'Back on its chain' }, ...(await adjustTopUp(tx, restored))]);
  await tell(tx, payment, 'payment.restored');
}

/**
 * Takes a reversed payment out of the credited sum of its top-up, or counts a restored or assigned one.
 * @returns the transfer that leaves a confirmed top-up the bonus of those payments that are in the balance
 */
async function adjustTopUp(tx: Transaction, payment: Payment): Promise<AccountPosting[]> {
  const { orderNumber, status, mode, coin, creditedMicros: micros } = payment;
  const isReversed = status === 'REVERSED';
  const externalKey = `${isReversed ? 'reverse' : 'restore'}-bonus:${reversalKey(payment)}`;
  return keepEarned(tx, orderNumber, { externalKey, description: 'Bonus of a removed payment' }, ({ crypto }) =>
    mode === 'X402' || coin === crypto ? (isReversed ? -micros : micros) : 0n,
  );
}

/**
 * Leaves a confirmed top-up the bonus that its payments earn, less what payouts took of them. The account owes the rest.
 * @param given the key of the transfer, and its description if it takes a bonus
 * @param changeOf by how much the credited sum of the top-up changes besides
 * @returns the transfer
 */
export async function keepEarned(
  tx: Transaction,
  orderNumber: string | null,
  given: Pick<Posting, 'externalKey' | 'description'>,
  changeOf: (topUp: TopUp) => bigint = () => 0n,
): Promise<AccountPosting[]> {
  const topUp = orderNumber === null ? undefined : await LOCK_PAID_TOP_UP.first(tx, [orderNumber]);
  if (!topUp) return [];
  const { accountId } = topUp;
  const reversedBonusMicros =
    topUp.status === 'CONFIRMED' ? topUp.bonusMicros - earnedMicros(topUp, topUp.paidMicros) : 0n;
  const takenMicros = reversedBonusMicros - topUp.reversedBonusMicros;
  const creditedMicros = topUp.creditedMicros - takenMicros + changeOf(topUp);
  await update(tx, TopUp, { id: topUp.id }, { reversedBonusMicros, creditedMicros });
  tx.changed({ kind: 'topUp', accountId, id: topUp.orderNumber });
  const common = { accountId, kind: 'adjustment', orderNumber: topUp.orderNumber } as const;
  if (takenMicros > 0n)
    return [{ ...common, ...given, debit: owed(accountId), credit: BONUS, amountMicros: takenMicros }];
  const credit = { debit: BONUS, credit: available(accountId), amountMicros: -takenMicros };
  return [{ ...common, ...given, ...credit, description: 'Bonus' }];
}

/**
 * Gives an unmatched payment to an account. Unless the payment is final, the chain may still remove it. The top-up of another
 * account does not show the payment any more. The caller settles a top-up that gets its own payment.
 */
export async function assignPayment(tx: Transaction, payment: Payment, accountId: string): Promise<void> {
  requireReported(payment);
  const { id, mode, coin, creditedMicros } = payment;
  const orderNumber = accountId === payment.accountId ? payment.orderNumber : null;
  const set = { accountId, orderNumber, creditedAt: expression('now()') };
  const assigned = await movePayment(tx, payment, 'ASSIGNED', set);
  // The worker may ask its gateway no more.
  if (payment.finalAt !== null) await movePayment(tx, assigned, 'FINAL');
  const isOwn = orderNumber !== null && (await exists(tx, TopUp, { orderNumber, crypto: coin, mode: 'CRYPTO' }));
  const way = [SUSPENSE, available(accountId)] as const;
  const credit = posting(assigned, isOwn ? 'topup' : 'adjustment', way, creditedMicros, `assign:${id}`);
  await postAll(tx, [credit, ...(isOwn ? await adjustTopUp(tx, assigned) : [])]);
  if (mode === 'X402') await startTask(tx, x402Task({ id, accountId }));
}

/**
 * Writes off an unmatched or reversed payment, or one in the balance. The account still owes what it had spent of it.
 * @param isGone whether the chain has removed one by x402 for good
 */
export async function writeOffPayment(tx: Transaction, payment: Payment, isGone: boolean): Promise<void> {
  const { status, height, blockHash } = payment;
  const isMissing = status === 'UNMATCHED' && (isGone || (height !== null && blockHash === null));
  const isCredited = isInBalance(payment);
  const suspended = isCredited ? await reversePayment(tx, payment) : payment;
  await movePayment(tx, suspended, 'WRITTEN_OFF', {
    ...(isMissing && { missingSince: expression('now()') }),
    // Only a block that the worker reads again brings it back.
    ...(isCredited && { blockHash: null, minedAt: null, confirmations: 0 }),
  });
  const way = [SUSPENSE, gatewayOf(payment)] as const;
  const off = posting(payment, 'adjustment', way, payment.creditedMicros, onceMore('write-off', payment));
  await postAll(tx, [{ ...off, description: 'Written off' }]);
}

/** @throws ApiError validation_failed if the gateway of a payment reports it no more, so that its coins may be gone */
export function requireReported({ missingSince }: Payment): void {
  if (missingSince === null) return;
  const message = 'The gateway does not report the payment any more. Wait until it does, or write the payment off.';
  throw refuse('id', 'missing', message);
}

/**
 * Keeps that the operator sent an unmatched payment back by a transaction. The caller knows that the payment is final, and has
 * locked the operator.
 * @throws ApiError validation_failed if the operator swept its coins out of its gateway
 */
export async function returnPayment(tx: Transaction, payment: Payment, returnTxId: string): Promise<void> {
  requireReported(payment);
  await movePayment(tx, payment, 'RETURNED', { returnTxId, finalAt: FINAL_BY_NOW });
  if (await isOverdrawn(tx, gatewayOf(payment), payment.coin)) {
    const message = 'The gateway has fewer coins, because you moved them. Send requestReturn with a wallet as source.';
    throw refuse('id', 'too_few', message);
  }
  const way = [SUSPENSE, gatewayOf(payment)] as const;
  await postAll(tx, [posting(payment, 'adjustment', way, payment.creditedMicros, `return:${payment.id}`)]);
}

/** The chain cannot remove a payment whose coins go back. */
export const FINAL_BY_NOW = expression('coalesce(final_at, now())');

/** Identifies a reversal in the ledger, because a payment may have several. */
const reversalKey = ({ reversals, externalKey }: Payment): string => `${reversals}:${externalKey}`;

/** The external key of a move that a payment may make several times. Its lifecycle allows each move once. */
const onceMore = (move: string, { externalKey }: Payment): string => `${move}:${newId('xfr')}:${externalKey}`;

type Told = Pick<Payment, 'id' | 'orderNumber' | 'network' | 'txId'>;
type PaymentEvent = EventType & `payment.${string}`;
/** The event of the operator about a payment. */
export const newsOf = ({ id, orderNumber, network, txId }: Told, type: PaymentEvent, data: object = {}) => ({
  ...{ accountId: OPERATOR_ACCOUNT, subject: id, type, actor: SYSTEM },
  data: { orderNumber, network, txId, ...data },
});
/** Tells the operator about a payment. */
export const tell = (tx: Transaction, payment: Told, type: PaymentEvent): Promise<void> =>
  recordAll(tx, [newsOf(payment, type)]);
