/** Amounts of coins: whole numbers of the smallest unit, and decimal strings in the coin. */

/** What an amount of micro-USD is in a coin, in units, rounded up. */
export function unitsOf(micros: bigint, rateMicros: bigint, decimals: number): bigint {
  return (micros * 10n ** BigInt(decimals) + rateMicros - 1n) / rateMicros;
}

/** What units are worth in micro-USD, rounded down. */
export const microsOf = (units: bigint, rateMicros: bigint, decimals: number): bigint =>
  (units * rateMicros) / 10n ** BigInt(decimals);

/** A decimal string without zeros at its end. */
export function formatUnits(units: bigint, decimals: number): string {
  const unit = 10n ** BigInt(decimals);
  const fraction = (units % unit).toString().padStart(decimals, '0').replace(/0+$/, '');
  return fraction ? `${units / unit}.${fraction}` : String(units / unit);
}

/** Reads such a string. @throws Error if it is none, or finer than the coin */
export function parseUnits(amount: string, decimals: number): bigint {
  const [, whole, fraction = ''] = /^(\d+)(?:\.(\d+))?$/.exec(amount) ?? [];
  if (whole === undefined || fraction.length > decimals) throw new Error(`${amount} is no amount of that coin.`);
  return BigInt(whole + fraction.padEnd(decimals, '0'));
}
