/**
 * The counters of the rate limits that several processes share. One statement counts a call under all its names, or under
 * none if a window of one is full. The table is unlogged: a crash empties it, and no commit waits for it.
 */
import * as column from './database/column.ts';
import { statement } from './database/statement.ts';
import { columnsOf, entity } from './database/table.ts';
import type { Queryable } from './database/transaction.ts';

export const RateLimitCount = entity('rate', {
  /** A credential, an account, or the keyed hash of an address or a site; never an address. */
  key: column.key(),
  /** Seconds since the epoch, by the clock of the database. */
  at: column.real(),
  /** The number of the window since the epoch, the calls in it, and the calls in the window before it. */
  minute: column.bigint(),
  inMinute: column.int(),
  beforeMinute: column.int(),
  hour: column.bigint(),
  inHour: column.int(),
  beforeHour: column.int(),
  allowed: column.boolean(),
});

/** A name under which calls count, and the most calls. Quotas are at least 1. */
export interface Quota {
  name: string;
  perMinute: number;
  perHour: number;
}

/** The calls in a window of time and in the window before it. */
export interface Counted {
  current: number;
  before: number;
  /** Seconds since the window began. */
  elapsed: number;
}

/** The counts under one name after a call. */
export interface Taken {
  /** Whether the name had room for the call. The call counts only if all its names had. */
  allowed: boolean;
  minute: Counted;
  hour: Counted;
}

/** SQL over the row before the call (r) and the call (excluded). The window slides: the count of the last one fades out. */
function sliding(window: 'minute' | 'hour', seconds: number, quota: string) {
  const current = `case when r.${window} >= excluded.${window} then r.in_${window} else 0 end`;
  const before = `case when r.${window} >= excluded.${window} then r.before_${window} when r.${window} = excluded.${window} - 1 then r.in_${window} else 0 end`;
  const fading = `least(1, 1 - (excluded.at / ${seconds} - greatest(r.${window}, excluded.${window})))`;
  return { current, before, fits: `(${before}) * ${fading} + (${current}) + 1 <= ${quota}` };
}
const fitsIn = (quota: (column: string) => string) => ({
  minute: sliding('minute', 60, quota('per_minute')),
  hour: sliding('hour', 3600, quota('per_hour')),
});
const { minute, hour } = fitsIn((column) => `(select ${column} from given where given.key = r.key)`);
const allowed = `(${minute.fits} and ${hour.fits})`;
const before = fitsIn((column) => `given.${column}`);
const counted = '(not exists (select from crowded where crowded.key <> r.key))';

/**
 * Counts a call under the names $1, with the quotas $2 of the minute and $3 of the hour. The names without room come from
 * the snapshot. So a call that another process overtakes may count under one name, and be refused by the other.
 */
const TAKE_CALL = statement(RateLimitCount.columns)`
  with given as (select * from unnest($1::text[], $2::int[], $3::int[]) as given(key, per_minute, per_hour)),
    clock as (
      select s as at, floor(s / 60) as minute, floor(s / 3600) as hour
      from (select extract(epoch from clock_timestamp())::double precision as s) as now),
    crowded as materialized (
      select r.key from rate r join given on given.key = r.key cross join clock excluded
      where not (${before.minute.fits} and ${before.hour.fits}))
  insert into rate as r (key, at, minute, in_minute, before_minute, hour, in_hour, before_hour, allowed)
    select key, at, minute, free, 0, hour, free, 0, true
    from given cross join clock cross join lateral (
      select (not exists (select from crowded where crowded.key <> given.key))::int as free) as one
    order by key
    on conflict (key) do update set
      at = excluded.at,
      minute = greatest(r.minute, excluded.minute),
      in_minute = ${minute.current} + (${allowed} and ${counted})::int,
      before_minute = ${minute.before},
      hour = greatest(r.hour, excluded.hour),
      in_hour = ${hour.current} + (${allowed} and ${counted})::int,
      before_hour = ${hour.before},
      allowed = ${allowed}
    returning ${columnsOf(RateLimitCount, 'r')}`;

/** Deletes the counters that no longer count. */
const DELETE_OLD_COUNTS = statement({})`
  delete from rate where at < extract(epoch from now()) - case when key like 'ip:%' then 120 else 7200 end`;

/** Counts a call under all names, or under none if one has no room. @returns the counts of each */
export async function takeRateLimits(db: Queryable, quotas: readonly Quota[]): Promise<Taken[]> {
  const columns = (['name', 'perMinute', 'perHour'] as const).map((member) => quotas.map((quota) => quota[member]));
  const rows = await TAKE_CALL.all(db, columns);
  const elapsed = (at: number, window: bigint, seconds: number) => Math.max(0, at - Number(window) * seconds);
  return quotas.map(({ name }) => {
    const row = rows.find(({ key }) => key === name)!;
    return {
      allowed: row.allowed,
      minute: { current: row.inMinute, before: row.beforeMinute, elapsed: elapsed(row.at, row.minute, 60) },
      hour: { current: row.inHour, before: row.beforeHour, elapsed: elapsed(row.at, row.hour, 3600) },
    };
  });
}

/** Deletes the counters that no longer count. */
export const sweepRateLimits = (db: Queryable): Promise<unknown> => DELETE_OLD_COUNTS.all(db);
