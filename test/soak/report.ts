/** Prints the results of a soak as a table and a list. */
import type { Answer } from './measurements.ts';
import type { Requirement } from './requirements.ts';

const HEADS = ['', 'count', 'p50 ms', 'p99 ms', 'max ms', 'refusals'];
/** The report prints this many faults of one requirement. */
const FAULTS_MOST = 6;
/** The report prints this much of each fault. */
const FAULT_CHARACTERS = 1_000;

/** Makes one row for each operation, the most frequent first. */
export function table(answers: readonly Answer[]): string {
  const groups = [...Map.groupBy(answers, ({ name }) => name)].toSorted((a, b) => b[1].length - a[1].length);
  const rows = groups.map(([name, group]) => {
    const times = group.map(({ ms }) => ms).toSorted((a, b) => a - b);
    const at = (part: number) => times[Math.min(times.length - 1, Math.floor(times.length * part))]!.toFixed(0);
    return [name, String(times.length), at(0.5), at(0.99), at(1), refusals(group)];
  });
  const widths = HEADS.map((head, column) =>
    Math.max(...[head, ...rows.map((row) => row[column]!)].map(({ length }) => length)),
  );
  const line = (cells: string[]) =>
    cells
      .map((cell, i) => (i > 0 && i < 5 ? cell.padStart(widths[i]!) : cell.padEnd(widths[i]!)))
      .join('  ')
      .trimEnd();
  return [HEADS, ...rows].map(line).join('\n');
}

const refusals = (answers: readonly Answer[]): string =>
  [...Map.groupBy(answers, ({ code }) => code)]
    .filter(([code]) => code !== 'ok')
    .map(([code, those]) => `${code} ${those.length}`)
    .join(', ');

/** Lists each requirement with its faults, and counts the met ones. */
export function verdict(requirements: readonly Requirement[]): string {
  const lines = requirements.flatMap(({ name, faults }) => {
    if (!faults.length) return [`  ok      ${name}`];
    const shown = faults.slice(0, FAULTS_MOST).map((fault) => `          - ${fault.slice(0, FAULT_CHARACTERS)}`);
    const more = faults.length > FAULTS_MOST ? [`          and ${faults.length - FAULTS_MOST} more`] : [];
    return [`  FAILED  ${name}: ${faults.length}`, ...shown, ...more];
  });
  const failed = requirements.filter(({ faults }) => faults.length).length;
  return [...lines, '', `${requirements.length - failed} passed, ${failed} failed`].join('\n');
}
