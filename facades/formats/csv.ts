/** CSV (RFC 4180), which spreadsheets open. */
import Negotiator from 'negotiator';
import type { JsonSchema } from '../compile/json-schema.ts';
import type { ListFormat } from './json-lines.ts';

export const CSV_TYPE = 'text/csv';
export const CSV_SCHEMA: JsonSchema = {
  description: 'All entries from the cursor on, as CSV (RFC 4180) with a line of names.',
  type: 'string',
  maxLength: 2 ** 31 - 1,
  pattern: '\\r\\n$',
};

/** Whether an Accept header prefers CSV to JSON. */
export const wantsCsv = (accept: string | undefined): boolean =>
  accept !== undefined &&
  new Negotiator({ headers: { accept } }).mediaType(['application/json', CSV_TYPE]) === CSV_TYPE;

/** A list with these members of its entries. */
export const csvFormat = (members: readonly string[]): ListFormat => ({
  head: csvLine(members),
  lineOf: (entry) => csvLine(members.map((member) => (entry as Record<string, unknown>)[member])),
});

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
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Returns a line, with its end. */
export const csvLine = (cells: readonly unknown[]): string => `${cells.map(cellOf).join(',')}\r\n`;
