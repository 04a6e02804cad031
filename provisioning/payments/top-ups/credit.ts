/** Credits the payments of top-ups, or puts them into suspense, in memory: the caller locks the rows, and writes them. */

import { microsFromUsd, usdFromMicros } from '../../../entities/money.ts';
import type { KeptBonusTier } from '../../../entities/payments/bonus.ts';
import { available, BONUS } from '../../../entities/payments/ledger.ts';
import type { Payment } from '../../../entities/payments/payment.ts';
import { MINED_AFTER_QUOTE_SECONDS, type TopUp } from '../../../entities/payments/top-up.ts';
import type { ExchangeRates } from '../exchange-rates/exchange-rate.ts';
import { type AccountPosting, creditPosting, newsOf, suspensePosting, UNMATCHED_MIN_USD } from '../suspense.ts';
import { microsOf, parseUnits } from './amount.ts';

/** One settlement of several payments: the caller writes the rows and the postings when all are settled. */
export interface SettlementBatch {
  /** The time of the transaction. */
  now: Date;
  exchangeRates: ExchangeRates;
  /** The present steps. */
  bonusTiers: readonly KeptBonusTier[];
  /** Transfers that the caller posts at once in the end. */
  postings: AccountPosting[];
  /** Events that the caller records at once in the end. */
  news: ReturnType<typeof newsOf>[];
  /** The late payments. Each top-up has one event for its own. */
  late: Payment[];
}

/**
 * Credits a confirmed payment. In time, the quoted part counts at the rate of the quote. The excess counts at the lower of
 * quote and present rate, because a quote is no option. So does all of a payment that came in time, and waited too long for
 * its block. A late payment counts at the present rate. A payment above the limit of its gateway goes to suspense.
 * @param usedUnits the units that the payments before used of the quote
 * @returns credited micro-USD; 0 in suspense or without an exchange rate
 */
export function creditPayment(
  { now, exchangeRates, postings, news, late }: SettlementBatch,
  topUp: TopUp,
  payment: Payment,
  usedUnits: bigint,
): bigint {
  const { decimals, spotMicros, holdAboveMicros } = exchangeRates.get(payment.coin)!;
  const units = BigInt(payment.units);
  const isLate = topUp.paymentException === 'LATE' || payment.seenAt > topUp.expiresAt!;
  const quoteEnd = topUp.expiresAt!.getTime() + MINED_AFTER_QUOTE_SECONDS * 1000;
  const isQuoted = !isLate && payment.minedAt!.getTime() <= quoteEnd;
  const dueUnits = parseUnits(topUp.amountCrypto, decimals);
  const leftUnits = isQuoted && usedUnits < dueUnits ? dueUnits - usedUnits : 0n;
  const quoted = units < leftUnits ? units : leftUnits;
  const rate = isLate || spotMicros === null || spotMicros < topUp.rateMicros ? spotMicros : topUp.rateMicros;
  if (quoted < units && rate === null) return 0n;
  // Shares of a running total, so that the last part makes up exactly the amount of the quote.
  const share = (paid: bigint) => (topUp.amountMicros * paid) / dueUnits;
  const micros = share(usedUnits + quoted) - share(usedUnits) + microsOf(units - quoted, rate ?? 0n, decimals);
  Object.assign(payment, { creditedMicros: micros, quotedUnits: String(quoted), rateMicros: rate });
  if (isLate) late.push(payment);
  if (holdAboveMicros !== undefined && micros > holdAboveMicros) {
    Object.assign(payment, { status: 'UNMATCHED' });
    postings.push(suspensePosting(payment, micros));
    news.push(newsOf(payment, 'payment.held'));
    return 0n;
  }
  Object.assign(payment, { status: 'CREDITED', creditedAt: now });
  postings.push(creditPosting(payment, micros));
  return micros;
}

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

/**
 * Puts a payment in another coin into suspense for the operator to decide. It waits without an exchange rate. A small one is
 * written off at no value instead. Its coins stay in the gateway.
 */
export function suspendPayment({ exchangeRates, postings, news }: SettlementBatch, payment: Payment): void {
  const { decimals, spotMicros } = exchangeRates.get(payment.coin) ?? { decimals: 0, spotMicros: null };
  if (spotMicros === null) return;
  const micros = microsOf(BigInt(payment.units), spotMicros, decimals);
  if (micros < microsFromUsd(UNMATCHED_MIN_USD)) {
    Object.assign(payment, { status: 'WRITTEN_OFF', rateMicros: spotMicros });
    return;
  }
  Object.assign(payment, { status: 'UNMATCHED', rateMicros: spotMicros, creditedMicros: micros });
  postings.push(suspensePosting(payment, micros));
  news.push(newsOf(payment, 'payment.unmatched'));
}

/** The events of late payments, one for each top-up. */
export const lateNews = (late: readonly Payment[]): SettlementBatch['news'] =>
  [...Map.groupBy(late, ({ orderNumber }) => orderNumber).values()].map((payments) => {
    const amountMicros = payments.reduce((sum, { creditedMicros }) => sum + creditedMicros, 0n);
    return newsOf(payments[0]!, 'payment.late', { count: payments.length, amountUsd: usdFromMicros(amountMicros) });
  });
