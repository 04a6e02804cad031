/** The use of the machine of a server: its traffic of the month, and the samples of its meter. */
import { databaseTime } from '../../entities/database/clock.ts';
import { ApiError } from '../../entities/errors.ts';
import { FIND_TRAFFIC_USED, LIST_USE, type Use } from '../../entities/servers/metering/meter.ts';
import { FIND_SLOWNESS } from '../../entities/servers/metering/traffic.ts';
import type { ShownServer } from '../../entities/servers/server.ts';
import type { Context } from '../context.ts';
import { findServer } from './find.ts';

const HOUR_MS = 3_600_000;
/** Milliseconds that the samples of minutes are kept. */
const MINUTES_MS = 24 * HOUR_MS;
const STEP_SECONDS = { MINUTE: 60, HOUR: 3600 } as const;

export type MetricStep = keyof typeof STEP_SECONDS;
/** The default ends now, and begins an hour before. */
export interface MetricRange {
  from?: Date | null | undefined;
  to?: Date | null | undefined;
  /** Default: minutes, as long as they are kept. */
  step?: MetricStep | null | undefined;
}
export interface Metrics {
  from: Date;
  to: Date;
  step: MetricStep;
  slow: boolean;
  points: Use[];
}

/** The samples of a server. @throws ApiError not_found, or invalid_query for an impossible range */
export async function findMetrics(context: Context, orderNumber: string, range: MetricRange): Promise<Metrics> {
  await findServer(context, orderNumber);
  const now = await databaseTime(context.db);
  const to = range.to ?? now;
  const from = range.from ?? new Date(to.getTime() - HOUR_MS);
  if (from > to) {
    const message = 'from must not be later than the end of the range.';
    throw new ApiError('invalid_query', message, { errors: [{ field: 'from', code: 'out_of_range', message }] });
  }
  const step = range.step ?? (now.getTime() - from.getTime() > MINUTES_MS ? 'HOUR' : 'MINUTE');
  const [slowness, points] = await Promise.all([
    FIND_SLOWNESS.first(context.db, [orderNumber]),
    LIST_USE.all(context.db, [orderNumber, STEP_SECONDS[step], from, to]),
  ]);
  return { from, to, step, slow: slowness?.isSlow ?? false, points };
}

/**
 * The traffic of the month in GB; null if the machine has no meter. The message of a webhook has no context, and null.
 * The row of a change lacks it, so that costs one more query.
 */
export function trafficUsedGb(
  { orderNumber, trafficUsedBytes: known, paidUntil }: ShownServer,
  context: Context | undefined,
): number | null | Promise<number | null> {
  if (known !== undefined) return gbFrom(known);
  if (!context || !paidUntil) return null;
  return FIND_TRAFFIC_USED.first(context.db, [orderNumber]).then((used) => gbFrom(used?.trafficUsedBytes ?? null));
}

const gbFrom = (bytes: bigint | null) => (bytes === null ? null : Number(bytes) / 1e9);
