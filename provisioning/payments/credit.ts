/** What becomes of one payment: it is credited, put into suspense, taken back, restored. Each under the lock of its row. */
import { OPERATOR_ACCOUNT, SYSTEM } from '../../entities/audit.ts';
import type { Transaction } from '../../entities/database.ts';
import type { EventType } from '../../entities/event.ts';
import { available, gateway, type Posting, post, SUSPENSE } from '../../entities/ledger.ts';
import { type Payment, type PaymentStatus, paymentStatesBefore } from '../../entities/payment.ts';
import { record } from '../../entities/record.ts';
import { setSuspension } from '../../entities/suspension.ts';
import { TopUp } from '../../entities/top-up.ts';
import { microsOf, parseUnits } from './amount.ts';
import type { Worths } from './rates/worth.ts';

/**
 * Credits a payment that has confirmed: what had been quoted at the rate of the quote, if it came in time; the rest at the
 * rate of the moment, and what is too much at the lower of the two, for a quote is no option.
 * @param payments all of the top-up; @param topUp is brought up to date with it
 * @returns whether it was credited; not while nobody knows what it is worth
 */
export async function creditPayment(
  tx: Transaction,
  topUp: TopUp,
  payment: Payment,
  payments: readonly Payment[],
  worths: Worths,
): Promise<boolean> {
  const { decimals, spotMicros } = worths.get(payment.coin)!;
  const units = BigInt(payment.units);
  const isLate = topUp.paymentException === 'LATE' || payment.seenAt > topUp.expiresAt!;
  const usedUnits = payments.reduce((sum, { quotedUnits }) => sum + BigInt(quotedUnits ?? 0), 0n);
  const dueUnits = parseUnits(topUp.amountCrypto, decimals);
  const leftUnits = isLate || usedUnits > dueUnits ? 0n : dueUnits - usedUnits;
  const quoted = units < leftUnits ? units : leftUnits;
  const rate = isLate || spotMicros === null || spotMicros < topUp.rateMicros ? spotMicros : topUp.rateMicros;
  if (quoted < units && rate === null) return false;
  // The last part of a quote brings it up to exactly what was asked for.
  const share = (paid: bigint) => (topUp.amountMicros * paid) / dueUnits;
  const micros = share(usedUnits + quoted) - share(usedUnits) + microsOf(units - quoted, rate ?? 0n, decimals);
  await move(tx, payment, 'CREDITED', { quotedUnits: String(quoted), rateMicros: rate, creditedMicros: micros });
  await post(tx, payment.accountId, [
    posting(payment, 'topup', gateway(payment.network), available(payment.accountId), micros, keyOf(payment)),
  ]);
  topUp.creditedMicros += micros;
  await tx.manager.update(TopUp, { id: topUp.id }, { creditedMicros: topUp.creditedMicros });
  return true;
}

/** By what a payment is known to the ledger, whatever happens to it. */
const keyOf = ({ network, txId, position }: Payment): string => `pay:${network}:${txId}:${position}`;

const posting = (
  { orderNumber, coin }: Payment,
  kind: Posting['kind'],
  debit: string,
  credit: string,
  amountMicros: bigint,
  externalKey: string,
): Posting => ({ kind, debit, credit, amountMicros, externalKey, orderNumber, description: `Top-up in ${coin}` });

/** What came in another coin is nobody's yet: the operator decides. Waits while nobody knows what it is worth. */
export async function suspendPayment(tx: Transaction, payment: Payment, worths: Worths): Promise<void> {
  const { decimals, spotMicros } = worths.get(payment.coin) ?? { decimals: 0, spotMicros: null };
  if (spotMicros === null) return;
  const micros = microsOf(BigInt(payment.units), spotMicros, decimals);
  await move(tx, payment, 'UNMATCHED', { rateMicros: spotMicros, creditedMicros: micros });
  await post(tx, payment.accountId, [
    posting(payment, 'topup', gateway(payment.network), SUSPENSE, micros, keyOf(payment)),
  ]);
  await tell(tx, payment, 'payment.unmatched');
}

/**
 * A payment that had been credited is gone from its chain: what the balance still has is taken into suspense, the account
 * may spend no more, and the operator is told. The balance never becomes negative.
 */
export async function reversePayment(tx: Transaction, payment: Payment): Promise<void> {
  const { accountId, creditedMicros, reversals } = payment;
  const [balance] = await tx.query<{ micros: bigint }>(
    'select available_micros as micros from balance where account_id = $1 for update',
    [accountId],
  );
  const taken = balance!.micros < creditedMicros ? balance!.micros : creditedMicros;
  await move(tx, payment, 'REVERSED', { reversedMicros: taken, reversals: reversals + 1 });
  await post(tx, accountId, [
    posting(payment, 'adjustment', available(accountId), SUSPENSE, taken, `reverse:${reversals + 1}:${keyOf(payment)}`),
  ]);
  await setSuspension(tx, accountId, 'A payment of yours has vanished from its chain.', SYSTEM);
  await tell(tx, payment, 'payment.reversed');
}

/** It is on its chain again, and has confirmed: what was taken is given back. The operator ends the suspension. */
export async function restorePayment(tx: Transaction, payment: Payment): Promise<void> {
  const { accountId, reversedMicros, reversals } = payment;
  await move(tx, payment, 'CREDITED', { reversedMicros: 0n });
  await post(tx, accountId, [
    posting(
      payment,
      'adjustment',
      SUSPENSE,
      available(accountId),
      reversedMicros,
      `restore:${reversals}:${keyOf(payment)}`,
    ),
  ]);
  await tell(tx, payment, 'payment.restored');
}

/** Tells the operator what became of a payment. */
export const tell = (
  tx: Transaction,
  payment: Pick<Payment, 'id' | 'orderNumber' | 'network' | 'txId'>,
  type: Extract<EventType, `payment.${string}`>,
): Promise<string> =>
  record(tx, OPERATOR_ACCOUNT, payment.id, {
    ...{ type, resource: 'payment', actor: SYSTEM },
    data: { orderNumber: payment.orderNumber, network: payment.network, txId: payment.txId },
  });

/** Moves a payment by the table of its states, and brings the row in hand up to date. */
async function move(tx: Transaction, payment: Payment, to: PaymentStatus, set: Partial<Payment>): Promise<void> {
  const creditedAt = to === 'CREDITED' ? (payment.creditedAt ?? new Date()) : payment.creditedAt;
  if (!paymentStatesBefore(to).includes(payment.status))
    throw new Error(`A payment that is ${payment.status} cannot become ${to}.`);
  Object.assign(payment, set, { status: to, creditedAt });
  await tx.manager.update('payment', { id: payment.id }, { ...set, status: to, creditedAt });
}
