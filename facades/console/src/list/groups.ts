/** The sums that a plot shows. */
import type { Row } from '../api.ts';
import type { Plot } from '../pages/page.ts';

/** The most names. The table has the others. */
const NAMES_MAX = 12;

interface Group {
  name: string;
  values: number[];
}

/** The rows by their name in the plot, the largest first. Days stay in their order. */
export function groupsOf({ name, series, isInOrder }: Plot, rows: readonly Row[]): Group[] {
  const groups = [...Map.groupBy(rows, name)].map(([title, members]) => ({
    name: title,
    values: series.map(({ value }) => members.reduce((sum, row) => sum + value(row), 0)),
  }));
  const total = ({ values }: Group) => values.reduce((sum, one) => sum + one, 0);
  const sorted = isInOrder ? groups.toReversed() : groups.toSorted((one, other) => total(other) - total(one));
  return isInOrder ? sorted.slice(-NAMES_MAX) : sorted.slice(0, NAMES_MAX);
}
