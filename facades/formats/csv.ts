/** CSV (RFC 4180), which spreadsheets open. */
import type { JsonSchema } from '../compile/json-schema.ts';
import { preferredType } from './accept.ts';
import { csvLine } from './csv-line.ts';
import type { ListFormat } from './json-lines.ts';

export const CSV_TYPE = 'text/csv';
export const CSV_SCHEMA: JsonSchema = {
  description: 'All entries from the cursor on, as CSV (RFC 4180) with a line of names.',
  type: 'string',
  maxLength: 2 ** 31 - 1,
  pattern: '\\r\\n$',
};

/** Whether an Accept header prefers CSV to JSON. */
export const wantsCsv = (accept: string | undefined): boolean => preferredType(accept, CSV_TYPE) !== undefined;

/** A list with these members of its entries. */
export const csvFormat = (members: readonly string[]): ListFormat => ({
  head: csvLine(members),
  lineOf: (entry) => csvLine(members.map((member) => (entry as Record<string, unknown>)[member])),
});
