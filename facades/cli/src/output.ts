/** Results on the standard output: a table for people, JSON or YAML for programs. */
import { stringify } from 'yaml';
import { say, write } from './terminal.ts';

export type Format = 'table' | 'json' | 'yaml';
type Row = Readonly<Record<string, unknown>>;
/** The heading of a column, and its value in a row. */
export type Columns<T> = Readonly<Record<string, (row: T) => unknown>>;

/** Prints a list. A terminal gets only the columns for which it has room, so no line breaks. */
export function printRows<T extends object>(rows: readonly T[], columns: Columns<T>, format: Format): void {
  if (format !== 'table') {
    print(rows, format);
    return;
  }
  if (!rows.length) {
    say('The list is empty.');
    return;
  }
  const width = (process.stdout.isTTY && process.stdout.columns) || Number.POSITIVE_INFINITY;
  const { text, cut } = tableOf(rows, columns, width);
  write(text);
  if (cut.length) say(`\nThe terminal is too narrow for all of ${cut.join(', ')}. See --output json.`);
}

/** A shorter part of a column is not worth its place. */
const SHORTENED_MIN = 16;

/**
 * A table of at most a width. It shortens the first column that has not enough room, and leaves out those after it.
 * @returns its text, and the headings of the columns that lost something
 */
export function tableOf<T>(
  rows: readonly T[],
  columns: Columns<T>,
  width: number,
): { text: string; cut: readonly string[] } {
  const headings = Object.keys(columns);
  const lines = rows.map((row) => headings.map((heading) => shown(columns[heading]!(row)).replaceAll('\n', ' ')));
  const cells = [headings.map((heading) => heading.replaceAll('_', ' ').toUpperCase()), ...lines];
  let room = width;
  let whole = 0;
  for (const one of widthsOf(cells)) {
    if (one > room) break;
    room -= one + GAP.length;
    whole++;
  }
  const count = whole < headings.length && room >= SHORTENED_MIN ? whole + 1 : Math.max(1, whole);
  const fitting = cells.map((line) =>
    line.slice(0, count).map((cell, i) => (i < whole ? cell : shortened(cell, room))),
  );
  return { text: aligned(fitting), cut: cells[0]!.slice(whole) };
}

const shortened = (text: string, width: number): string =>
  text.length > width ? `${text.slice(0, Math.max(0, width - 1))}…` : text;

/** Prints one thing. */
export function print(thing: unknown, format: Format): void {
  if (format === 'json') write(JSON.stringify(thing, null, 2));
  else if (format === 'yaml') write(stringify(thing).trimEnd());
  else if (typeof thing === 'object' && thing) write(fieldsOf(thing as Row));
  else write(shown(thing));
}

/** People need no fields without a value. */
const fieldsOf = (thing: Row): string =>
  aligned(
    Object.entries(thing).flatMap(([name, value]) => {
      if (shown(value) === NOTHING) return [];
      const isAmount = name.endsWith('_usd') && typeof value === 'number';
      return [[`${name.replace(/_usd$/, '').replaceAll('_', ' ')}:`, isAmount ? usd(value) : shown(value)]];
    }),
  );

/** A time, as the service writes it. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
/** A time for people. */
export const moment = (time: string): string => `${time.slice(0, 16).replace('T', ' ')} UTC`;

const NOTHING = '-';

function shown(value: unknown): string {
  if (value === null || value === undefined || value === '') return NOTHING;
  if (Array.isArray(value)) return value.map(shown).join(', ') || NOTHING;
  if (typeof value === 'string' && TIME.test(value)) return moment(value);
  if (typeof value === 'object')
    return (
      Object.entries(value)
        .map(([name, one]) => `${name}=${shown(one)}`)
        .join(' ') || NOTHING
    );
  return String(value);
}

const GAP = '  ';
const widthsOf = (lines: readonly (readonly string[])[]): number[] =>
  (lines[0] ?? []).map((_, i) => Math.max(...lines.map((line) => line[i]!.length)));

/** The last column is as long as it is. */
function aligned(lines: readonly (readonly string[])[]): string {
  const widths = widthsOf(lines);
  return lines
    .map((line) =>
      line
        .map((cell, i) => (i === line.length - 1 ? cell : cell.padEnd(widths[i]!)))
        .join(GAP)
        .trimEnd(),
    )
    .join('\n');
}

/** An amount in US dollars. */
export const usd = (amount: number | null | undefined): string =>
  amount === null || amount === undefined ? '-' : `${amount < 0 ? '-' : ''}$${Math.abs(amount).toFixed(2)}`;

/** How long ago something was, as `3d` or `5m`. */
export function ago(time: string | null | undefined, now = Date.now()): string {
  if (!time) return '-';
  const seconds = Math.max(0, (now - Date.parse(time)) / 1000);
  const [size, unit] = (
    [
      [86_400, 'd'],
      [3600, 'h'],
      [60, 'm'],
      [1, 's'],
    ] as const
  ).find(([least]) => seconds >= least) ?? [1, 's'];
  return `${Math.floor(seconds / size)}${unit}`;
}
