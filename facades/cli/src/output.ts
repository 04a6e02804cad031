/** Results on the standard output: a table for people, JSON or YAML for programs. */
import { stringify } from 'yaml';

export type Format = 'table' | 'json' | 'yaml';
type Row = Readonly<Record<string, unknown>>;
/** The heading of a column, and its value in a row. */
export type Columns<T> = Readonly<Record<string, (row: T) => unknown>>;

/** Prints a list. */
export function printRows<T extends object>(rows: readonly T[], columns: Columns<T>, format: Format): void {
  if (format !== 'table') {
    print(rows, format);
    return;
  }
  const headings = Object.keys(columns);
  const lines = rows.map((row) => headings.map((heading) => shown(columns[heading]!(row))));
  console.log(aligned([headings.map((heading) => heading.toUpperCase()), ...lines]));
}

/** Prints one thing. */
export function print(thing: unknown, format: Format): void {
  if (format === 'json') console.log(JSON.stringify(thing, null, 2));
  else if (format === 'yaml') process.stdout.write(stringify(thing));
  else if (typeof thing === 'object' && thing) console.log(fieldsOf(thing as Row));
  else console.log(shown(thing));
}

const fieldsOf = (thing: Row): string =>
  aligned(
    Object.entries(thing).map(([name, value]) => {
      const isAmount = name.endsWith('_usd') && typeof value === 'number';
      return [`${name.replace(/_usd$/, '').replaceAll('_', ' ')}:`, isAmount ? usd(value) : shown(value)];
    }),
  );

function shown(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-';
  if (Array.isArray(value)) return value.map(shown).join(', ') || '-';
  if (value instanceof Date) return value.toISOString();
  if (typeof value === 'object')
    return (
      Object.entries(value)
        .map(([name, one]) => `${name}=${shown(one)}`)
        .join(' ') || '-'
    );
  return String(value);
}

/** Columns are two blanks apart, and the last one is as long as it is. */
function aligned(lines: readonly (readonly string[])[]): string {
  const widths = (lines[0] ?? []).map((_, i) => Math.max(...lines.map((line) => line[i]!.length)));
  return lines
    .map((line) =>
      line
        .map((cell, i) => (i === line.length - 1 ? cell : cell.padEnd(widths[i]!)))
        .join('  ')
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
