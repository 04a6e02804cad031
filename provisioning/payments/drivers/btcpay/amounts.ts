/** Decimal strings of BTCPay as units of a coin. */

/**
 * A fraction that is finer than the unit, as Lightning's thousandths of a satoshi, is dropped.
 * @throws Error if it is no amount
 */
export function unitsIn(amount: string, decimals: number): bigint {
  const [, whole, fraction = ''] = /^(\d+)(?:\.(\d+))?$/.exec(String(amount)) ?? [];
  if (whole === undefined) throw new Error(`${amount} is no amount.`);
  return BigInt(whole + fraction.slice(0, decimals).padEnd(decimals, '0'));
}

/** The same amount, no finer than the unit: rounded up, for it is what has to be paid. */
export function roundedUp(amount: string, decimals: number): string {
  const units = unitsIn(amount, decimals);
  const [, fraction = ''] = amount.split('.');
  const up = /[1-9]/.test(fraction.slice(decimals)) ? units + 1n : units;
  const digits = String(up).padStart(decimals + 1, '0');
  const rest = digits.slice(digits.length - decimals).replace(/0+$/, '');
  return digits.slice(0, digits.length - decimals) + (rest && `.${rest}`);
}
