/**
 * Logins that failed and logins under way, where several processes count them together. The rows are named by keyed
 * hashes, never by an email or an address. Times are seconds since the epoch, by the clock of the database. The table is
 * not logged: it is lost in a crash, and costs no commit a wait.
 */
import { type Column, defaulting, entity, key, real } from '../database/table.ts';
import type { Queryable } from '../database/transaction.ts';

export const LoginCount = entity(
  'login_tally',
  {
    /** The keyed hash of a name, of a network, or of both. */
    key: key(),
    /** When logins failed. */
    failures: { type: 'double precision', array: true, default: () => "'{}'" } as Column<number[]>,
    /** When those that are under way are no longer counted, if nobody says how they ended. */
    underWay: { type: 'double precision', array: true, default: () => "'{}'" } as Column<number[]>,
    /** Until when this name is known to log in from this network. */
    knownUntil: defaulting(real(), 0),
    /** When nothing in the row counts any more. */
    forgetAt: real(),
  },
  [{ name: 'login_tally_forget', columns: ['forgetAt'] }],
);

/** After so long a login whose process ended with it is no longer counted. */
const UNDER_WAY_SECONDS = 60;
const KNOWN_SECONDS = 7 * 24 * 3600;

/** A login that may be tried, and what its end has to name. */
export interface BegunLogin {
  keys: string[];
  /** What stands for it among those under way. */
  mark: number;
}

/** Either a login begins, or nothing changes: `waitSeconds` until a failure is forgotten, 0 if one under way may end well. */
export type BeginLogin = { begun: BegunLogin } | { waitSeconds: number };

/** Begins a login of a pair of name and network that is known, or else counts it for each of the two. */
export async function beginLogin(
  db: Queryable,
  { pair, apart, max, windowSeconds }: { pair: string; apart: string[]; max: number; windowSeconds: number },
): Promise<BeginLogin> {
  const rows = await db.query<{ key: string; mark: number; fits: boolean; wait: number }>(BEGIN, [
    pair,
    apart,
    max,
    windowSeconds,
    UNDER_WAY_SECONDS,
  ]);
  const { mark } = rows[0]!;
  const fitting = rows.filter(({ fits }) => fits).map((row) => row.key);
  if (fitting.length === rows.length) return { begun: { keys: fitting, mark } };
  if (fitting.length) await endLogin(db, { keys: fitting, mark }, false);
  return { waitSeconds: Math.max(...rows.map(({ wait }) => wait)) };
}
const NOW = 'extract(epoch from clock_timestamp())::double precision';
const after = (column: string, limit: string) =>
  `array(select one from unnest(${column}) as one where one > ${limit} order by one)`;
// A random fraction of a millisecond tells those apart that begin at once.
const BEGIN = `
  with clock as (select ${NOW} as at, ${NOW} + $5 + random() / 1000 as mark),
    known as (select key from login_tally, clock where key = $1 and known_until > at),
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

/** Says how a login ended; what did not fail is forgotten. */
export const endLogin = (db: Queryable, { keys, mark }: BegunLogin, failed: boolean): Promise<unknown> =>
  db.query(
    `with given as (select key from login_tally where key = any($1) order by key for update)
    update login_tally as t set under_way = array_remove(t.under_way, $2::double precision),
      failures = case when $3 then t.failures || ${NOW} else t.failures end
    from given where t.key = given.key`,
    [keys, mark, failed],
  );

/** Remembers that a name has logged in from a network. */
export const rememberLogin = (db: Queryable, pair: string): Promise<unknown> =>
  db.query(
    `insert into login_tally as t (key, known_until, forget_at) values ($1, ${NOW} + $2, ${NOW} + $2)
    on conflict (key) do update set known_until = excluded.known_until, forget_at = greatest(t.forget_at, excluded.forget_at)`,
    [pair, KNOWN_SECONDS],
  );

/** What no longer counts goes. */
export const sweepLogins = (db: Queryable): Promise<unknown> =>
  db.query(`delete from login_tally where forget_at < ${NOW}`);
