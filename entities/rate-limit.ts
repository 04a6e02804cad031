/**
 * The counters of the rate limits that several processes share. One statement counts a call in both windows, or in none
 * if either is full. The table is unlogged: a crash empties it, and no commit waits for it.
 */
import * as column from './database/column.ts';
import { statement } from './database/statement.ts';
import { columnsOf, entity } from './database/table.ts';
import type { Queryable } from './database/transaction.ts';

export const RateLimitCount = entity('rate', {
  /** A credential, or the keyed hash of an address; never an address. */
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
const { key: _key, ...COUNTED } = RateLimitCount.columns;

/** The calls in a window of time and in the window before it. */
export interface Counted {
  current: number;
  before: number;
  /** Seconds since the window began. */
  elapsed: number;
}

export interface Taken {
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
const minute = sliding('minute', 60, '$2::int');
const hour = sliding('hour', 3600, '$3::int');
const allowed = `(${minute.fits} and ${hour.fits})`;

/** Counts a call, if both windows have room for it. $1 key, $2 quota of the minute, $3 quota of the hour. */
const TAKE_CALL = statement(COUNTED)`
  insert into rate as r (key, at, minute, in_minute, before_minute, hour, in_hour, before_hour, allowed)
    select $1, s, floor(s / 60), 1, 0, floor(s / 3600), 1, 0, true
    from (select extract(epoch from clock_timestamp())::double precision as s) as clock
    on conflict (key) do update set
      at = excluded.at,
      minute = greatest(r.minute, excluded.minute),
      in_minute = ${minute.current} + ${allowed}::int,
      before_minute = ${minute.before},
      hour = greatest(r.hour, excluded.hour),
      in_hour = ${hour.current} + ${allowed}::int,
      before_hour = ${hour.before},
      allowed = ${allowed}
    returning ${columnsOf(RateLimitCount, 'r', ['key'])}`;

/** Deletes the counters that no longer count. */
const DELETE_OLD_COUNTS = statement({})`
  delete from rate where at < extract(epoch from now()) - case when key like 'ip:%' then 120 else 7200 end`;

/** Counts a call under a name, if both windows have room for it. Quotas are at least 1. */
export async function takeRateLimit(db: Queryable, name: string, perMinute: number, perHour: number): Promise<Taken> {
  const row = (await TAKE_CALL.first(db, [name, perMinute, perHour]))!;
  const elapsed = (window: bigint, seconds: number) => Math.max(0, row.at - Number(window) * seconds);
  return {
    allowed: row.allowed,
    minute: { current: row.inMinute, before: row.beforeMinute, elapsed: elapsed(row.minute, 60) },
    hour: { current: row.inHour, before: row.beforeHour, elapsed: elapsed(row.hour, 3600) },
  };
}

/** Deletes the counters that no longer count. */
export const sweepRateLimits = (db: Queryable): Promise<unknown> => DELETE_OLD_COUNTS.all(db);
