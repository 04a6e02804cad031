/** What becomes of one payment: it is credited, put into suspense, taken back, restored. Each under the lock of its row. */

import type { Transaction } from '../../../entities/database/transaction.ts';
import { OPERATOR_ACCOUNT, SYSTEM } from '../../../entities/history/audit.ts';
import type { EventType } from '../../../entities/history/event.ts';
import { record } from '../../../entities/history/record.ts';
import { ADJUSTMENT, available, gateway, type Posting, SUSPENSE } from '../../../entities/payments/ledger.ts';
import {
  keepPayments,
  type Payment,
  type PaymentStatus,
  paymentStatesBefore,
} from '../../../entities/payments/payment.ts';
import type { TopUp } from '../../../entities/payments/top-up.ts';
import { reverse, writeOff } from '../chains/reversal.ts';
import type { ExchangeRates } from '../exchange-rates/exchange-rate.ts';
import { microsOf, parseUnits } from './amount.ts';

export type AccountPosting = Posting & { accountId: string };

/** One settlement of several payments: the caller writes the rows and the postings when all are settled. */
export interface SettlementBatch {
  tx: Transaction;
  exchangeRates: ExchangeRates;
  /** What is to be posted in the end, for all of them at once. */
  postings: AccountPosting[];
}

/**
 * Credits a payment that has confirmed: what had been quoted at the rate of the quote, if it came in time; the rest at the
 * rate of the moment, and what is too much at the lower of the two, for a quote is no option.
 * @param payments all of the top-up
 * @returns what was credited, in micro-USD; nothing while nobody knows what it is worth
 */
export function creditPayment(
  { exchangeRates, postings }: SettlementBatch,
  topUp: TopUp,
  payment: Payment,
  payments: readonly Payment[],
): bigint {
  const { decimals, spotMicros } = exchangeRates.get(payment.coin)!;
  const units = BigInt(payment.units);
  const isLate = topUp.paymentException === 'LATE' || payment.seenAt > topUp.expiresAt!;
  const usedUnits = payments.reduce((sum, { quotedUnits }) => sum + BigInt(quotedUnits ?? 0), 0n);
  const dueUnits = parseUnits(topUp.amountCrypto, decimals);
  const leftUnits = isLate || usedUnits > dueUnits ? 0n : dueUnits - usedUnits;
  const quoted = units < leftUnits ? units : leftUnits;
  const rate = isLate || spotMicros === null || spotMicros < topUp.rateMicros ? spotMicros : topUp.rateMicros;
  if (quoted < units && rate === null) return 0n;
  // The last part of a quote brings it up to exactly what was asked for.
  const share = (paid: bigint) => (topUp.amountMicros * paid) / dueUnits;
  const micros = share(usedUnits + quoted) - share(usedUnits) + microsOf(units - quoted, rate ?? 0n, decimals);
  move(payment, 'CREDITED', { quotedUnits: String(quoted), rateMicros: rate, creditedMicros: micros });
  postings.push(
    posting(payment, 'topup', gateway(payment.network), available(payment.accountId), micros, keyOf(payment)),
  );
  return micros;
}

/** By what a payment is known to the ledger, whatever happens to it. */
const keyOf = ({ network, txId, position }: Payment): string => `pay:${network}:${txId}:${position}`;

const posting = (
  { accountId, orderNumber, coin }: Payment,
  kind: Posting['kind'],
  debit: string,
  credit: string,
  amountMicros: bigint,
  externalKey: string,
): AccountPosting => ({
  accountId,
  kind,
  debit,
  credit,
  amountMicros,
  externalKey,
  orderNumber,
  description: `Top-up in ${coin}`,
});

/** What came in another coin is nobody's yet: the operator decides. Waits while nobody knows what it is worth. */
export async function suspendPayment(
  { tx, exchangeRates, postings }: SettlementBatch,
  payment: Payment,
): Promise<void> {
  const { decimals, spotMicros } = exchangeRates.get(payment.coin) ?? { decimals: 0, spotMicros: null };
  if (spotMicros === null) return;
  const micros = microsOf(BigInt(payment.units), spotMicros, decimals);
  move(payment, 'UNMATCHED', { rateMicros: spotMicros, creditedMicros: micros });
  postings.push(posting(payment, 'topup', gateway(payment.network), SUSPENSE, micros, keyOf(payment)));
  await tell(tx, payment, 'payment.unmatched');
}

/**
 * A payment that had been credited is gone from its chain: what the balance still has is taken into suspense, the account
 * may spend no more, and the operator is told. The balance never becomes negative.
 */
export async function reversePayment(tx: Transaction, payment: Payment): Promise<void> {
  const { creditedMicros, coin, accountId, orderNumber } = payment;
  const reversals = payment.reversals + 1;
  const reversed = { accountId, orderNumber, creditedMicros, key: `${reversals}:${keyOf(payment)}` };
  const reversedMicros = await reverse(tx, reversed, `Top-up in ${coin}`);
  move(payment, 'REVERSED', { reversedMicros, reversals });
  await keepPayments(tx, [payment]);
  await tell(tx, payment, 'payment.reversed');
}

/** Nobody waits any more for a payment that was taken back. */
export async function writeOffPayment(tx: Transaction, payment: Payment): Promise<void> {
  const { reversals, network } = payment;
  move(payment, 'WRITTEN_OFF', {});
  await keepPayments(tx, [payment]);
  await writeOff(tx, network, { ...payment, key: `${reversals}:${keyOf(payment)}` });
}

/** It is on its chain again, and has confirmed: what was taken is given back. The operator ends the suspension. */
export async function restorePayment({ tx, postings }: SettlementBatch, payment: Payment): Promise<void> {
  const { accountId, network, creditedMicros, reversedMicros, reversals } = payment;
  const isWrittenOff = payment.status === 'WRITTEN_OFF';
  move(payment, 'CREDITED', { reversedMicros: 0n });
  const key = `${reversals}:${keyOf(payment)}`;
  const from = isWrittenOff ? gateway(network) : SUSPENSE;
  postings.push(posting(payment, 'adjustment', from, available(accountId), reversedMicros, `restore:${key}`));
  if (isWrittenOff)
    postings.push(posting(payment, 'adjustment', from, ADJUSTMENT, creditedMicros - reversedMicros, `regain:${key}`));
  await tell(tx, payment, 'payment.restored');
}

/** Tells the operator what became of a payment. */
export const tell = (
  tx: Transaction,
  payment: Pick<Payment, 'id' | 'network' | 'txId'> & { orderNumber: string | null },
  type: EventType & `payment.${string}`,
): Promise<string> =>
  record(tx, OPERATOR_ACCOUNT, payment.id, {
    type,
    actor: SYSTEM,
    data: { orderNumber: payment.orderNumber, network: payment.network, txId: payment.txId },
  });

/** Moves a payment by the table of its states; the row in hand, which is written down later. */
function move(payment: Payment, to: PaymentStatus, set: Partial<Payment>): void {
  if (!paymentStatesBefore(to).includes(payment.status))
    throw new Error(`A payment that is ${payment.status} cannot become ${to}.`);
  const creditedAt = to === 'CREDITED' ? (payment.creditedAt ?? new Date()) : payment.creditedAt;
  Object.assign(payment, set, { status: to, creditedAt });
}
