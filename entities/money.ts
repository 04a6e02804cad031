/** Money is bigint micro-USD: 1 USD = 1,000,000, and one atomic unit of USDC = 1. */

export const MICROS_PER_USD = 1_000_000n;
/** The hours of a month. A monthly price divided by them is the hourly rate of refunds. */
const HOURS_PER_MONTH = 730n;

/** From a JSON number of US dollars; exact below 10⁹ USD, rounded to the nearest micro-USD. */
export const microsFromUsd = (usd: number): bigint => BigInt(Math.round(usd * 1e6));

/** To a JSON number of US dollars. */
export const usdFromMicros = (micros: bigint): number => Number(micros) / 1e6;

/** The hourly rate of a monthly price, rounded down. */
export const hourlyMicros = (monthMicros: bigint): bigint => monthMicros / HOURS_PER_MONTH;

/** The refund for unused whole hours; never more than the month's price. */
export function refundMicros(monthMicros: bigint, paidUntil: Date, now: Date): bigint {
  const hours = Math.floor((paidUntil.getTime() - now.getTime()) / 3_600_000);
  if (hours <= 0) return 0n;
  const refund = hourlyMicros(monthMicros) * BigInt(hours);
  return refund < monthMicros ? refund : monthMicros;
}

/**
 * The price difference of the hours until `paidUntil` at a higher monthly price. Begun hours count as whole ones. The
 * result is rounded up, so that no refund exceeds the price.
 */
export function differenceMicros(fromMonthMicros: bigint, toMonthMicros: bigint, paidUntil: Date, now: Date): bigint {
  const hours = Math.ceil((paidUntil.getTime() - now.getTime()) / 3_600_000);
  if (hours <= 0 || toMonthMicros <= fromMonthMicros) return 0n;
  return ((toMonthMicros - fromMonthMicros) * BigInt(hours) + HOURS_PER_MONTH - 1n) / HOURS_PER_MONTH;
}

/** What the refund of a deletion loses by a change to a lower monthly price; 0 for a higher one. */
export function lostRefundMicros(fromMonthMicros: bigint, toMonthMicros: bigint, paidUntil: Date, now: Date): bigint {
  const lost = refundMicros(fromMonthMicros, paidUntil, now) - refundMicros(toMonthMicros, paidUntil, now);
  return lost > 0n ? lost : 0n;
}

/** The hours of a paid month. */
export const PAID_HOURS = Number(HOURS_PER_MONTH);
