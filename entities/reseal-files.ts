/**
 * Rewrites the tables that have sealed columns. PostgreSQL keeps changed rows in the files of a table, and in its WAL, for a
 * while. A later copy of these files would still open with the earlier key.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { newClient } from './database/connection.ts';
import { SEALED_COLUMNS } from './database/sealed.ts';
import { sqlStateOf } from './database/transaction.ts';
import { SecretKey } from './secret-key.ts';

const TABLES = new Set([...SEALED_COLUMNS.map(({ table }) => table), SecretKey.options.tableName!]);
/**
 * `vacuum full` locks one table at a time against all other use. A checkpoint keeps old files of the WAL for new records. So
 * the commands begin a new file and then write over all others.
 */
const COMMANDS: readonly string[] = [
  ...[...TABLES].map((table) => `vacuum full ${table}`),
  // Its statistics have no sealed values now, but had them before the migration 0017. PostgreSQL skips the table for a role
  // that is no superuser.
  'vacuum full pg_statistic',
  'select pg_switch_wal()',
  'checkpoint',
  `select pg_logical_emit_message(false, 'freehold', ''), pg_switch_wal() from pg_ls_waldir()`,
  'checkpoint',
];

/** The owner may not send a command (42501), or a table stayed locked (55P03). */
const REFUSED = new Set<string | undefined>(['42501', '55P03']);
/** How long requests wait at most behind a command that waits for its lock. */
const LOCK_TIMEOUT = '5s';
/** An older transaction may still read the replaced rows. Then the new files would keep them. */
const OLDER = `select from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid() and xact_start < $1`;
const OLDER_PAUSE_MS = 200;
const OLDER_WAITS_MAX = 150;

/**
 * Rewrites the tables and the WAL.
 * @param ownerUrl the database by the role that owns the tables. Undefined: nothing happens
 * @returns the commands that remain; none if all succeeded
 * @throws Error if an older transaction does not end
 */
export async function rewriteTables(ownerUrl: string | undefined): Promise<readonly string[]> {
  if (ownerUrl === undefined) return COMMANDS;
  const client = newClient(ownerUrl);
  await client.connect();
  try {
    await awaitOlder(client);
    await client.query(`set lock_timeout = '${LOCK_TIMEOUT}'`);
    for (const [at, command] of COMMANDS.entries())
      try {
        await client.query(command);
      } catch (error) {
        if (REFUSED.has(sqlStateOf(error))) return COMMANDS.slice(at);
        throw error;
      }
    return [];
  } finally {
    await client.end();
  }
}

async function awaitOlder(client: pg.Client): Promise<void> {
  const { rows } = await client.query('select clock_timestamp() as now');
  for (let waits = 0; (await client.query(OLDER, [rows[0].now])).rowCount; waits++) {
    if (waits === OLDER_WAITS_MAX)
      throw new Error('A transaction of the database does not end, and may read earlier values. Run this again later.');
    await sleep(OLDER_PAUSE_MS);
  }
}
