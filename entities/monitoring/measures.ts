/**
 * Counts and durations of this process since its start. A scrape reads them (metrics.ts). To add one costs some hundred
 * nanoseconds. Labels are names of the code or of the configuration: no label comes from a caller.
 */

/** The upper bounds of durations in seconds. */
export const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const;

/** The counts of one combination of labels. */
export interface Series {
  labels: readonly string[];
  /** How often. */
  count: number;
  /** The sum of the durations in seconds. */
  seconds: number;
  /** How many durations each bound has, without those of lower bounds. Empty for a counter. */
  within: number[];
}

export class Measure {
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  readonly series = new Map<string, Series>();
  readonly #bounds: readonly number[];

  /** @param bounds none: the measure only counts */
  constructor(name: string, help: string, labels: readonly string[], bounds: readonly number[] = []) {
    [this.name, this.help, this.labels, this.#bounds] = [name, help, labels, bounds];
  }

  get isCounter(): boolean {
    return this.#bounds.length === 0;
  }

  /** Counts one. */
  add(...labels: string[]): void {
    this.#seriesOf(labels).count++;
  }

  /** Counts one that lasted so long. */
  observe(seconds: number, ...labels: string[]): void {
    const series = this.#seriesOf(labels);
    series.count++;
    series.seconds += seconds;
    const bound = this.#bounds.findIndex((most) => seconds <= most);
    if (bound >= 0) series.within[bound]!++;
  }

  #seriesOf(labels: readonly string[]): Series {
    const key = labels.join('\n');
    let series = this.series.get(key);
    if (!series) {
      series = { labels, count: 0, seconds: 0, within: this.#bounds.map(() => 0) };
      this.series.set(key, series);
    }
    return series;
  }
}

const FACADE = ['facade', 'operation'];
export const REQUESTS = new Measure('freehold_requests_total', 'Answered calls.', [...FACADE, 'status']);
export const REQUEST_SECONDS = new Measure('freehold_request_seconds', 'The time until an answer.', FACADE, BOUNDS);
export const STEPS = new Measure(
  'freehold_task_steps_total',
  'Steps of tasks by their end: done, conflict, outage or failed.',
  ['lane', 'outcome'],
);
export const LOST_LEASES = new Measure('freehold_leases_lost_total', 'Steps whose worker had lost the lease.', [
  'lane',
]);
export const ABANDONED_STEPS = new Measure('freehold_steps_abandoned_total', 'Steps that did not end.', ['lane']);
export const DRIVER_CALLS = new Measure(
  'freehold_driver_calls_total',
  'Calls to engines and gateways. The outcome is ok, or the code of an error.',
  ['kind', 'driver', 'call', 'outcome'],
);
export const DRIVER_CALL_SECONDS = new Measure(
  'freehold_driver_call_seconds',
  'The time until an engine or a gateway answers.',
  ['kind', 'driver'],
  BOUNDS,
);
export const MEASURES: readonly Measure[] = [
  ...[REQUESTS, REQUEST_SECONDS, STEPS, LOST_LEASES, ABANDONED_STEPS],
  ...[DRIVER_CALLS, DRIVER_CALL_SECONDS],
];
