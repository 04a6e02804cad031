/**
 * The counters of the rate limits, where several processes share them: one statement counts a call in both windows, or
 * in none if either is full. The table is not logged: it is lost in a crash, and costs no commit a wait.
 */

import { bigint, boolean, type Column, entity, int, key } from './database/table.ts';
import type { Queryable } from './database/transaction.ts';

export const RateLimitCount = entity('rate', {
  /** A credential, or the keyed hash of an address; never an address. */
  key: key(),
  /** Seconds since the epoch, by the clock of the database. */
  at: { type: 'double precision' } as Column<number>,
  /** The number of the window since the epoch, the calls in it, and those in the window before it. */
  minute: bigint(),
  inMinute: int(),
  beforeMinute: int(),
  hour: bigint(),
  inHour: int(),
  beforeHour: int(),
  allowed: boolean(),
});

/** How many calls a window of time has, and had before; how much of it is over, in seconds. */
export interface Counted {
  current: number;
  before: number;
  elapsed: number;
}

export interface Taken {
  allowed: boolean;
  minute: Counted;
  hour: Counted;
}

interface Row {
  allowed: boolean;
  at: number;
  minute: bigint;
  inMinute: number;
  beforeMinute: number;
  hour: bigint;
  inHour: number;
  beforeHour: number;
}

/** Quotas are at least 1. */
export async function takeRateLimit(db: Queryable, name: string, perMinute: number, perHour: number): Promise<Taken> {
  const [row] = await db.query<Row>(TAKE, [name, perMinute, perHour]);
  const { allowed, at, minute, hour } = row!;
  return {
    allowed,
    minute: { current: row!.inMinute, before: row!.beforeMinute, elapsed: Math.max(0, at - Number(minute) * 60) },
    hour: { current: row!.inHour, before: row!.beforeHour, elapsed: Math.max(0, at - Number(hour) * 3600) },
  };
}

/** What can no longer count goes. */
export const sweepRateLimits = (db: Queryable): Promise<unknown> =>
  db.query(`delete from rate where at < extract(epoch from now()) - case when key like 'ip:%' then 120 else 7200 end`);

/** SQL over the row as it was (r) and the call (excluded). A window slides: what was in the one before fades out. */
function sliding(window: 'minute' | 'hour', seconds: number, quota: string) {
  const current = `case when r.${window} >= excluded.${window} then r.in_${window} else 0 end`;
  const before = `case when r.${window} >= excluded.${window} then r.before_${window} when r.${window} = excluded.${window} - 1 then r.in_${window} else 0 end`;
  const fading = `least(1, 1 - (excluded.at / ${seconds} - greatest(r.${window}, excluded.${window})))`;
  return { current, before, fits: `(${before}) * ${fading} + (${current}) + 1 <= ${quota}` };
}
const minute = sliding('minute', 60, '$2::int');
const hour = sliding('hour', 3600, '$3::int');
const allowed = `(${minute.fits} and ${hour.fits})`;

const TAKE = `
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
  returning allowed, at, minute, in_minute, before_minute,
    hour, in_hour, before_hour`;
