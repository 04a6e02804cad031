/** Measures work by the statistics of PostgreSQL about all of its statements, also those of triggers and functions. */
import type { Database } from '../../entities/database/database.ts';

export interface Cost {
  /** The time of the execution in PostgreSQL. */
  ms: number;
  /** The pages of 8 KB that it read, from memory or not. */
  pages: number;
  /** The rows that came to Node. */
  rows: number;
}

/** The server needs it at its start: `shared_preload_libraries=pg_stat_statements`. */
export const prepareMeasures = (db: Database) => db.query('create extension if not exists pg_stat_statements');

/** Runs the work, and returns its cost. */
export async function costOf(db: Database, work: () => Promise<unknown>): Promise<Cost> {
  await db.query('select pg_stat_statements_reset()');
  await work();
  const [cost] = await db.query<Cost>(
    `select coalesce(sum(total_exec_time), 0)::float8 as ms,
      coalesce(sum(shared_blks_hit + shared_blks_read + temp_blks_read + temp_blks_written), 0)::int as pages,
      coalesce(sum(rows) filter (where query ~* '^\\s*(select|with)'), 0)::int as rows
    from pg_stat_statements where query !~ 'pg_stat_statements' and dbid = (select oid from pg_database where datname = current_database())`,
  );
  return cost!;
}
