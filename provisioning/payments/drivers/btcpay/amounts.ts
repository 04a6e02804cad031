/** Decimal strings of BTCPay as units of a coin. */

/**
 * Reads an amount as units. It drops finer fractions, such as Lightning's thousandths of a satoshi.
 * @throws Error if it is not an amount
 */
export function unitsIn(amount: string, decimals: number): bigint {
  const [, whole, fraction = ''] = /^(\d+)(?:\.(\d+))?$/.exec(String(amount)) ?? [];
  if (whole === undefined) throw new Error(`${amount} is not an amount.`);
  return BigInt(whole + fraction.slice(0, decimals).padEnd(decimals, '0'));
}

/** Rounds an amount up to whole units, because the customer has to pay it. */
export function roundedUp(amount: string, decimals: number): string {
  const units = unitsIn(amount, decimals);
  const [, fraction = ''] = amount.split('.');
  const up = /[1-9]/.test(fraction.slice(decimals)) ? units + 1n : units;
  const digits = String(up).padStart(decimals + 1, '0');
  const rest = digits.slice(digits.length - decimals).replace(/0+$/, '');
  return digits.slice(0, digits.length - decimals) + (rest && `.${rest}`);
}
