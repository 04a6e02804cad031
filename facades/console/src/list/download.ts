/** The rows of a page as a file of CSV, which spreadsheets open. */
import { csvLine } from '../../../formats/csv-line.ts';
import type { Row } from '../api.ts';

/** Returns the rows with all their fields. Things within a row are JSON. */
export function csvOf(rows: readonly Row[]): string {
  const fields = Object.keys(rows[0] ?? {});
  const cellOf = (value: unknown) => (value !== null && typeof value === 'object' ? JSON.stringify(value) : value);
  return csvLine(fields) + rows.map((row) => csvLine(fields.map((field) => cellOf(row[field])))).join('');
}

/** Saves the rows as a file. */
export function download(name: string, rows: readonly Row[]): void {
  const url = URL.createObjectURL(new Blob([csvOf(rows)], { type: 'text/csv' }));
  const link = Object.assign(document.createElement('a'), { href: url, download: `${name}.csv` });
  link.click();
  URL.revokeObjectURL(url);
}
