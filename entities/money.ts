/** Money is bigint micro-USD: 1 USD = 1,000,000, and one atomic unit of USDC = 1. */

export const MICROS_PER_USD = 1_000_000n;
/** The hours of a month, by which a monthly price becomes the hourly rate of refunds. */
const HOURS_PER_MONTH = 730n;

/** From a JSON number of US dollars; exact below 10⁹ USD, rounded to the nearest micro-USD. */
export const microsFromUsd = (usd: number): bigint => BigInt(Math.round(usd * 1e6));

/** To a JSON number of US dollars. */
export const usdFromMicros = (micros: bigint): number => Number(micros) / 1e6;

/** The hourly rate of a monthly price, rounded down. */
export const hourlyMicros = (monthMicros: bigint): bigint => monthMicros / HOURS_PER_MONTH;

/** What a refund of unused whole hours gives back; never more than the month's price. */
export function refundMicros(monthMicros: bigint, paidUntil: Date, now: Date): bigint {
  const hours = Math.floor((paidUntil.getTime() - now.getTime()) / 3_600_000);
  if (hours <= 0) return 0n;
  const refund = hourlyMicros(monthMicros) * BigInt(hours);
  return refund < monthMicros ? refund : monthMicros;
}

/**
 * What the hours until then cost more at a higher monthly price; hours that have begun count as whole ones. Rounded
 * up, so that no refund gives back more than was paid.
 */
export function differenceMicros(fromMonthMicros: bigint, toMonthMicros: bigint, paidUntil: Date, now: Date): bigint {
  const hours = Math.ceil((paidUntil.getTime() - now.getTime()) / 3_600_000);
  if (hours <= 0 || toMonthMicros <= fromMonthMicros) return 0n;
  return ((toMonthMicros - fromMonthMicros) * BigInt(hours) + HOURS_PER_MONTH - 1n) / HOURS_PER_MONTH;
}

/** A month that is paid for: as many hours as the hourly rate divides it by. */
export const PAID_HOURS = Number(HOURS_PER_MONTH);

export const hoursFromNow = (hours: number): Date => new Date(Date.now() + hours * 3_600_000);
