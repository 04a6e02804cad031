/** Amounts of coins: whole numbers of the smallest unit, and decimal strings in the coin. */

/** Micro-USD as units of a coin, rounded up. */
export function unitsOf(micros: bigint, rateMicros: bigint, decimals: number): bigint {
  return (micros * 10n ** BigInt(decimals) + rateMicros - 1n) / rateMicros;
}

/** Units of a coin as micro-USD, rounded down. */
export const microsOf = (units: bigint, rateMicros: bigint, decimals: number): bigint =>
  (units * rateMicros) / 10n ** BigInt(decimals);

/** Formats units as a decimal string without trailing zeros. */
export function formatUnits(units: bigint, decimals: number): string {
  if (units < 0n) return `-${formatUnits(-units, decimals)}`;
  const unit = 10n ** BigInt(decimals);
  const fraction = (units % unit).toString().padStart(decimals, '0').replace(/0+$/, '');
  return fraction ? `${units / unit}.${fraction}` : String(units / unit);
}

/** Reads a decimal string as units. @throws Error if it is not one, or has more decimals than the coin */
export function parseUnits(amount: string, decimals: number): bigint {
  const [, whole, fraction = ''] = /^(\d+)(?:\.(\d+))?$/.exec(amount) ?? [];
  if (whole === undefined || fraction.length > decimals) throw new Error(`${amount} is not an amount of that coin.`);
  return BigInt(whole + fraction.padEnd(decimals, '0'));
}
