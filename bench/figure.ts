/** One figure of the benchmark: a ratio or a size, which meets its bar by staying at or below it. */

export interface Figure {
  name: string;
  ratio: number;
  bar: number;
}

/** Prints the name, the ratio and the bar, and whether the bar is met. */
export function print({ name, ratio, bar }: Figure): void {
  console.log(`${name.padEnd(72)} ${ratio.toFixed(2)} (bar ${bar.toFixed(2)}) ${ratio <= bar ? 'met' : 'NOT MET'}`);
}

export const median = (values: readonly number[]): number => quantile(values, 0.5);

/** Returns the smallest value that is not below this part (0 to 1) of all values. */
export const quantile = (values: readonly number[], part: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))]!;
