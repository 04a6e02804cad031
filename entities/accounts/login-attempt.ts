/**
 * Failed logins and logins under way, which several processes count together. Keyed hashes name the rows, never an email
 * or an address. Times are seconds since the epoch, by the clock of the database. The table is unlogged: a crash empties
 * it, and no commit waits for it.
 */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { defaulting, entity } from '../database/table.ts';
import type { Queryable } from '../database/transaction.ts';

entity('login_tally', {
  /** The keyed hash of a name, of a network, or of both, each with a proof or without. */
  key: column.key(),
  /** The times of failed logins. */
  failures: { type: 'double precision', array: true, default: () => "'{}'" } as column.Column<number[]>,
  /** The times until which logins under way count, unless their process reports an end. */
  underWay: { type: 'double precision', array: true, default: () => "'{}'" } as column.Column<number[]>,
  /** Until this time, the name counts as known from the network. */
  knownUntil: defaulting(column.real(), 0),
  /** When the sweep may delete the row. */
  forgetAt: column.real(),
});

/** A login under way stops counting after once to twice this time, in case its process has died. */
const UNDER_WAY_SECONDS = 60;
const KNOWN_SECONDS = 7 * 24 * 3600;

/** A login that may go on. */
export interface BegunLogin {
  /** The rows that count it. */
  keys: string[];
  /** Identifies it among the logins under way. */
  mark: number;
}

/** A begun login, or the seconds until a failure is forgotten. 0: a login under way may still succeed. */
export type BeginLogin = { begun: BegunLogin } | { waitSeconds: number };

const NOW = 'extract(epoch from clock_timestamp())::double precision';
const after = (column: string, limit: string) =>
  `array(select one from unnest(${column}) as one where one > ${limit} order by one)`;
/**
 * Counts a login in the row $6 if its pair $1 is known, or else in the rows $2. A random part of a minute in the mark tells
 * logins apart that begin at once. $3 most failures, $4 seconds of the window, $5 seconds under way.
 */
const BEGIN_LOGIN = statement({ key: column.key(), mark: column.real(), fits: column.boolean(), wait: column.real() })`
  with clock as (select ${NOW} as at, ${NOW} + $5 * (1 + random()) as mark),
    known as (select $6::text as key from login_tally, clock where key = $1 and known_until > at),
    keys as (select key from known union all select key from unnest($2::text[]) as given(key) where not exists (select from known)),
    tallied as (
      insert into login_tally as t (key, under_way, forget_at)
      select key, array[mark], mark + $4 from keys, clock order by key
      on conflict (key) do update set
        failures = ${after('t.failures', '(select at from clock) - $4')},
        under_way = ${after('t.under_way', '(select at from clock)')} || case when
            (select count(*) from unnest(t.failures) as one where one > (select at from clock) - $4)
            + (select count(*) from unnest(t.under_way) as one where one > (select at from clock)) < $3
          then array[(select mark from clock)] else '{}' end,
        forget_at = greatest(t.forget_at, excluded.forget_at)
      returning key, failures, under_way)
  select key, mark, mark = any(under_way) as fits,
    case when cardinality(failures) >= $3 then failures[cardinality(failures) - $3 + 1] + $4 - at else 0 end as wait
  from tallied, clock`;
/** Ends the login with the mark $2 in the rows $1. $3 whether it failed. */
const END_LOGIN = statement({})`
  with given as (select key from login_tally where key = any($1) order by key for update)
    update login_tally as t set under_way = array_remove(t.under_way, $2::double precision),
      failures = case when $3 then t.failures || ${NOW} else t.failures end
    from given where t.key = given.key`;
/** Remembers the pair $1 for $2 seconds. */
const REMEMBER_LOGIN = statement({})`
  insert into login_tally as t (key, known_until, forget_at) values ($1, ${NOW} + $2, ${NOW} + $2)
    on conflict (key) do update set known_until = excluded.known_until, forget_at = greatest(t.forget_at, excluded.forget_at)`;
const DELETE_OLD_LOGINS = statement({})`delete from login_tally where forget_at < ${NOW}`;

/** Begins a login. A known pair of name and network counts in the row `paired`, and otherwise in the rows `apart`. */
export async function beginLogin(
  db: Queryable,
  attempt: { pair: string; paired: string; apart: string[]; max: number; windowSeconds: number },
): Promise<BeginLogin> {
  const { pair, paired, apart, max, windowSeconds } = attempt;
  const rows = await BEGIN_LOGIN.all(db, [pair, apart, max, windowSeconds, UNDER_WAY_SECONDS, paired]);
  const { mark } = rows[0]!;
  const fitting = rows.filter(({ fits }) => fits).map((row) => row.key);
  if (fitting.length === rows.length) return { begun: { keys: fitting, mark } };
  if (fitting.length) await endLogin(db, { keys: fitting, mark }, false);
  return { waitSeconds: Math.max(...rows.map(({ wait }) => wait)) };
}

/** Ends a login. Only a failed login stays in the count. */
export const endLogin = (db: Queryable, { keys, mark }: BegunLogin, failed: boolean): Promise<unknown> =>
  END_LOGIN.all(db, [keys, mark, failed]);

/** Remembers that a name has logged in from a network. */
export const rememberLogin = (db: Queryable, pair: string): Promise<unknown> =>
  REMEMBER_LOGIN.all(db, [pair, KNOWN_SECONDS]);

/** Deletes the rows that no longer count. */
export const sweepLogins = (db: Queryable): Promise<unknown> => DELETE_OLD_LOGINS.all(db);
