/** One figure of the benchmark: a ratio or a size, which meets its bar by staying at or below it. */

export interface Figure {
  name: string;
  ratio: number;
  bar: number;
  /** Further numbers of the same rounds. */
  detail?: string;
}

/** Prints the name, the ratio and the bar, and whether the bar is met. */
export function print({ name, ratio, bar, detail }: Figure): void {
  const verdict = ratio <= bar ? 'met' : 'NOT MET';
  console.log(
    `${name.padEnd(72)} ${ratio.toFixed(2)} (bar ${bar.toFixed(2)}) ${verdict}${detail ? `; ${detail}` : ''}`,
  );
}

/** Compares the costs of the service with those of its peer, in the same rounds. */
export function compareCosts(
  name: string,
  bar: number,
  unit: string,
  ours: readonly number[],
  theirs: readonly number[],
): Figure {
  const ratios = ours.map((one, round) => one / theirs[round]!);
  const range = [Math.min(...ratios), Math.max(...ratios)].map((one) => one.toFixed(2)).join(' to ');
  const medians = [ours, theirs]
    .map((costs) => `${median(costs).toFixed(unit === 'µs' ? 0 : 1)} ${unit}`)
    .join(' for ');
  return { name, ratio: median(ratios), bar, detail: `${range}, ${medians}` };
}

export const median = (values: readonly number[]): number => quantile(values, 0.5);

/** Returns the smallest value that is not below this part (0 to 1) of all values. */
export const quantile = (values: readonly number[], part: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))]!;
