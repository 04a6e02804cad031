/**
 * The page for Prometheus: the measures of this process, the figures of the service, and prom-client's metrics of Node. The
 * first scrape loads this module.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { collectDefaultMetrics, type Metric, type MetricValueWithName, Registry } from 'prom-client';
import type { Database } from '../database/database.ts';
import { FIGURES, READ_FIGURES } from './figures.ts';
import { BOUNDS, MEASURES, type Measure, type Series } from './measures.ts';

/** The figures of one read hold so long, so several scrapers cost no more than one. */
const HELD_MS = 5_000;
/** Milliseconds that the database has to answer. A scraper gives up after ten seconds. */
const ANSWER_MS = 5_000;

type Value = MetricValueWithName<string>;
type Figures = Awaited<ReturnType<typeof READ_FIGURES.all>>;

export interface MetricsOptions {
  db: Database;
  /** The lanes of all workers. */
  lanes: string[];
  /** The networks of the configured chains. */
  networks: string[];
}

export class Metrics {
  readonly #options: MetricsOptions;
  readonly #registry = new Registry();
  #figures: Figures = [];
  #isDatabaseUp = false;
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(options: MetricsOptions) {
    this.#options = options;
    const { db } = options;
    collectDefaultMetrics({ register: this.#registry });
    for (const measure of MEASURES)
      this.#add(measure.name, measure.isCounter ? 'counter' : 'histogram', measure.help, () => valuesOf(measure));
    this.#add('freehold_database_up', 'gauge', 'Whether the database answered this process.', () => [
      { labels: {}, value: this.#isDatabaseUp ? 1 : 0 },
    ]);
    this.#add('freehold_connections', 'gauge', 'Connections of this process to the database, by their state.', () =>
      Object.entries(db.connections).map(([state, value]) => ({ labels: { state }, value })),
    );
    for (const [name, [help, label]] of Object.entries(FIGURES))
      this.#add(`freehold_${name}`, 'gauge', help, () =>
        this.#figures
          .filter((row) => row.name === name)
          .map((row) => ({ labels: label ? { [label]: row.label! } : {}, value: row.value })),
      );
  }

  /** Returns the page, and its type. */
  async page(): Promise<{ type: string; text: string }> {
    if (performance.now() - this.#readAt > HELD_MS) await this.#read();
    return { type: this.#registry.contentType, text: await this.#registry.metrics() };
  }

  /** Reads the figures. Without the database, the page has those of the process alone. */
  async #read(): Promise<void> {
    this.#readAt = performance.now();
    const { db, lanes, networks } = this.#options;
    const read = READ_FIGURES.all(db, [lanes, networks]).catch(() => undefined);
    const figures = await Promise.race([read, sleep(ANSWER_MS, undefined, { ref: false })]);
    [this.#figures, this.#isDatabaseUp] = [figures ?? [], figures !== undefined];
  }

  /** Adds a metric whose values come when the registry asks, as those of prom-client's own classes do. */
  #add(name: string, type: string, help: string, values: () => Omit<Value, 'metricName'>[]): void {
    const metric = { name, get: async () => ({ name, type, help, values: values(), aggregator: 'sum' }) };
    this.#registry.registerMetric(metric as unknown as Metric);
  }
}

function valuesOf({ name, labels: names, series, isCounter }: Measure): Omit<Value, 'metricName'>[] {
  return [...series.values()].flatMap((one) => {
    const labels = Object.fromEntries(names.map((label, index) => [label, one.labels[index]!]));
    return isCounter ? [{ labels, value: one.count }] : durationsOf(name, labels, one);
  });
}

/** The lines of a histogram. A bucket also counts what lower ones have. */
function durationsOf(name: string, labels: Record<string, string>, { count, seconds, within }: Series): Value[] {
  const upTo = (index: number) => within.slice(0, index + 1).reduce((sum, one) => sum + one, 0);
  const buckets = BOUNDS.map((le, index) => ({ le: String(le), value: upTo(index) }));
  return [
    ...[...buckets, { le: '+Inf', value: count }].map(({ le, value }) => ({
      metricName: `${name}_bucket`,
      labels: { ...labels, le },
      value,
    })),
    { metricName: `${name}_sum`, labels, value: seconds },
    { metricName: `${name}_count`, labels, value: count },
  ];
}
