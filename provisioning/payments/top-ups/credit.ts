/** Moves of one payment: credited, put into suspense, reversed, restored. The caller holds the lock of its row. */
import type { Transaction } from '../../../entities/database/transaction.ts';
import { OPERATOR_ACCOUNT, SYSTEM } from '../../../entities/history/audit.ts';
import type { EventType } from '../../../entities/history/event.ts';
import { statesBefore } from '../../../entities/history/lifecycle.ts';
import { record } from '../../../entities/history/record.ts';
import { ADJUSTMENT, available, BONUS, gateway, type Posting, SUSPENSE } from '../../../entities/payments/ledger.ts';
import {
  keepPayments,
  PAYMENT_LIFECYCLE,
  type Payment,
  type PaymentStatus,
} from '../../../entities/payments/payment.ts';
import type { TopUp } from '../../../entities/payments/top-up.ts';
import { reverse, writeOff } from '../chains/reversal.ts';
import type { ExchangeRates } from '../exchange-rates/exchange-rate.ts';
import { microsOf, parseUnits } from './amount.ts';

export type AccountPosting = Posting & { accountId: string };

/** One settlement of several payments: the caller writes the rows and the postings when all are settled. */
export interface SettlementBatch {
  tx: Transaction;
  /** The time of the transaction. */
  now: Date;
  exchangeRates: ExchangeRates;
  /** Transfers that the caller posts at once in the end. */
  postings: AccountPosting[];
}

/**
 * Credits a confirmed payment. In time, the quoted part counts at the rate of the quote. The excess counts at the lower of
 * quote and present rate, because a quote is no option. A late payment counts at the present rate.
 * @param payments all payments of the top-up in its coin
 * @returns credited micro-USD; 0 without an exchange rate
 */
export function creditPayment(
  { now, exchangeRates, postings }: SettlementBatch,
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
  // Shares of a running total, so that the last part makes up exactly the amount of the quote.
  const share = (paid: bigint) => (topUp.amountMicros * paid) / dueUnits;
  const micros = share(usedUnits + quoted) - share(usedUnits) + microsOf(units - quoted, rate ?? 0n, decimals);
  const credited = { creditedMicros: micros, creditedAt: now };
  move(payment, 'CREDITED', { quotedUnits: String(quoted), rateMicros: rate, ...credited });
  postings.push(
    posting(payment, 'topup', gateway(payment.network), available(payment.accountId), micros, keyOf(payment)),
  );
  return micros;
}

/** Identifies the payment in the ledger. */
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

/** The posting of a top-up's bonus. */
export const bonusPosting = (
  { accountId, orderNumber }: Pick<TopUp, 'accountId' | 'orderNumber'>,
  amountMicros: bigint,
): AccountPosting => ({
  accountId,
  kind: 'bonus',
  debit: BONUS,
  credit: available(accountId),
  amountMicros,
  externalKey: `bonus:${orderNumber}`,
  orderNumber,
  description: 'Bonus',
});

/** Puts a payment in another coin into suspense for the operator to decide. It waits without an exchange rate. */
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

/** Reverses a credited payment that its chain has removed, and tells the operator. */
export async function reversePayment(tx: Transaction, payment: Payment): Promise<void> {
  const { creditedMicros, coin, accountId, orderNumber } = payment;
  const reversals = payment.reversals + 1;
  const reversed = { accountId, orderNumber, creditedMicros, key: `${reversals}:${keyOf(payment)}` };
  const reversedMicros = await reverse(tx, reversed, `Top-up in ${coin}`);
  move(payment, 'REVERSED', { reversedMicros, reversals });
  await keepPayments(tx, [payment]);
  await tell(tx, payment, 'payment.reversed');
}

/** Writes off a reversed payment. */
export async function writeOffPayment(tx: Transaction, payment: Payment): Promise<void> {
  const { reversals, network } = payment;
  move(payment, 'WRITTEN_OFF', {});
  await keepPayments(tx, [payment]);
  await writeOff(tx, network, { ...payment, key: `${reversals}:${keyOf(payment)}` });
}

/** Credits a reversed payment again that is back on its chain, and has confirmed. The operator ends the suspension. */
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

/** Tells the operator about a payment. */
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

/** Moves the row in memory. `keepPayments` writes it later. @throws Error if the lifecycle does not allow that */
function move(payment: Payment, to: PaymentStatus, set: Partial<Payment>): void {
  if (!statesBefore(PAYMENT_LIFECYCLE, to).includes(payment.status))
    throw new Error(`A payment that is ${payment.status} cannot become ${to}.`);
  Object.assign(payment, set, { status: to });
}
