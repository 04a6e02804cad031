/** A line of CSV. The console loads this file, too, so it imports nothing. */

/**
 * The beginning of a formula. Some programs drop spaces and invisible characters before it, and take wide signs for narrow
 * ones.
 */
const FORMULA = /^(?:[\t\r\n]|[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}]*[=+\-@])/u;

/** Returns a cell. Spreadsheets would run a text that begins like a formula, so it gets an apostrophe. Numbers stay numbers. */
function cellOf(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number' || typeof value === 'bigint') return String(value);
  const text = String(value);
  const safe = FORMULA.test(text) || FORMULA.test(text.normalize('NFKC')) ? `'${text}` : text;
  // Some languages separate cells by semicolons.
  return /[",;\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Returns a line, with its end. */
export const csvLine = (cells: readonly unknown[]): string => `${cells.map(cellOf).join(',')}\r\n`;
