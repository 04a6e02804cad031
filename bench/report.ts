/** The table of benchmark results. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** The result of one server in one slice of time. */
export interface Slice {
  perSecond: number;
  /** Processor time of the server for one request; NaN without /proc. */
  cpuMicros: number;
  /** Processor time of PostgreSQL's processes for one request. */
  databaseMicros: number;
}
export type Round = Record<'service' | 'handwritten', Slice>;
export interface Measured {
  name: string;
  /** The lowest ratio that meets the goal. */
  bar: number;
  rounds: Round[];
}

/** Linux reports the processor time of programs in hundredths of a second. */
const TICKS_PER_SECOND = 100;

/** Returns the processor seconds that a process has used so far; NaN without /proc. */
export function cpuSeconds(pid: number): number {
  const file = `/proc/${pid}/stat`;
  if (!existsSync(file)) return Number.NaN;
  // The program name in parentheses may hold spaces. User and system time are fields 12 and 13 after it.
  const fields = readFileSync(file, 'latin1').split(') ').at(-1)!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** Returns the processor seconds that the children of a process have used, by their process ids. */
export function secondsOfChildren(pid: number): Map<number, number> {
  const all = existsSync('/proc') ? readdirSync('/proc').map(Number).filter(Boolean) : [];
  // A process may end meanwhile.
  const isChild = (one: number) => existsSync(`/proc/${one}/stat`) && parentOf(one) === pid;
  return new Map(all.filter(isChild).map((one) => [one, cpuSeconds(one)]));
}

/** Returns the processor seconds that the processes of a PostgreSQL have used, since `secondsOfChildren` returned `before`. */
export const secondsOfDatabase = (postmaster: number, before: Map<number, number>): number =>
  [...secondsOfChildren(postmaster)].reduce((sum, [pid, used]) => sum + used - (before.get(pid) ?? 0), 0);

const parentOf = (pid: number): number =>
  Number(readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)!.split(' ')[1]);

export function report(measured: Measured[]): string {
  const rows = measured.map(({ name, bar, rounds }) => {
    const ratios = rounds.map(({ service, handwritten }) => service.perSecond / handwritten.perSecond);
    const median = middle(ratios);
    const of = (server: keyof Round, figure: keyof Slice) => middle(rounds.map((round) => round[server][figure]));
    return [
      name,
      of('service', 'perSecond').toFixed(0),
      of('handwritten', 'perSecond').toFixed(0),
      short(median),
      `${short(Math.min(...ratios))} – ${short(Math.max(...ratios))}`,
      short(bar),
      median >= bar ? 'met' : 'NOT MET',
      micros(of('service', 'cpuMicros')),
      micros(of('handwritten', 'cpuMicros')),
      micros(of('service', 'databaseMicros')),
      micros(of('handwritten', 'databaseMicros')),
    ];
  });
  const widths = HEADS.map((head, column) =>
    Math.max(...[head, ...rows.map((row) => row[column]!)].map(({ length }) => length)),
  );
  const line = (cells: string[]) =>
    cells.map((cell, column) => (column ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!))).join('  ');
  const missed = rows.filter((row) => row[6] !== 'met').map(([name]) => name);
  const verdict = missed.length ? `Below its bar: ${missed.join(', ')}.` : 'Every median meets its bar.';
  return `${[HEADS, ...rows].map(line).join('\n')}\n\n${LEGEND}\n${verdict}`;
}

const HEADS = [
  '',
  'service/s',
  'handwritten/s',
  'ratio',
  'min – max',
  'bar',
  '',
  'service CPU',
  'handwritten CPU',
  'PostgreSQL for service',
  'for handwritten',
];
const LEGEND =
  'Medians. The ratio of a round is the requests per second of the service to those of the handwritten server.\n' +
  'CPU is the processor time (user and system) of the server process for one request. The last columns have that of PostgreSQL.';

const middle = (values: number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!;
const short = (ratio: number): string => ratio.toFixed(2).replace(/^0/, '');
const micros = (value: number): string => (Number.isNaN(value) ? '-' : `${value.toFixed(0)} µs`);
