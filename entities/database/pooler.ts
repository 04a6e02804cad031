/**
 * A pooler in transaction mode, such as PgBouncer. It gives each transaction another session of PostgreSQL. So a session
 * cannot keep what the service would set, and the role of the service has these settings instead.
 */
import pg from 'pg';
import { newClient } from './connection.ts';

/** PostgreSQL ends a forgotten transaction: it would keep dead rows alive and slow down the leasing of tasks. */
export const IDLE_TRANSACTION_MS = 30_000;
/** A wait for a lock ends before that, so that a dead process cannot hold its locks again. */
export const LOCK_MS = 25_000;
/** The longest statement of a caller. Behind a pooler, it is the longest one of the service, too. */
export const STATEMENT_MS = 20_000;

const READ_SETTINGS = `
  select current_user as role, current_database() as name, (select system_identifier from pg_control_system()) as cluster,
    (select json_object_agg(name, setting) from pg_settings where name = any($1)) as settings`;

interface Session {
  role: string;
  name: string;
  /** PostgreSQL's number of the cluster. Its standbys have the same. */
  cluster: bigint;
  settings: Record<string, string>;
}

/**
 * Proves that a pooler leads to the database of the service, by sessions with its settings.
 * @param url the same database without the pooler
 * @throws Error that names the missing statements
 */
export async function checkPooler(url: string, poolerUrl: string): Promise<void> {
  const [direct, pooled] = await Promise.all([
    sessionOf(newClient(url)),
    sessionOf(new pg.Client(poolerUrl).on('error', () => {})).catch((error: Error) => {
      throw new Error(`DATABASE_POOLER_URL leads to no database: ${error.message}.`);
    }),
  ]);
  if (direct.cluster !== pooled.cluster || direct.name !== pooled.name)
    throw new Error('DATABASE_POOLER_URL names another database than DATABASE_URL.');
  const wanted: Record<string, string> = {
    search_path: spaced(direct.settings.search_path!),
    statement_timeout: `${STATEMENT_MS}`,
    lock_timeout: `${LOCK_MS}`,
    idle_in_transaction_session_timeout: `${IDLE_TRANSACTION_MS}`,
  };
  const missing = Object.entries(wanted).filter(([name, value]) => spaced(pooled.settings[name]!) !== value);
  if (!missing.length) return;
  const [role, database] = [pooled.role, pooled.name].map(pg.escapeIdentifier);
  const statements = missing.map(
    ([name, value]) => `alter role ${role} in database ${database} set ${name} = ${value};`,
  );
  throw new Error(
    'The sessions of DATABASE_POOLER_URL lack settings. Run these statements, and then RECONNECT in the pooler:\n' +
      statements.join('\n'),
  );
}

/** Writes a list as PostgreSQL stores it for a role. */
const spaced = (list: string) => list.replace(/,\s*/g, ', ');

async function sessionOf(client: pg.Client): Promise<Session> {
  try {
    await client.connect();
    const names = ['search_path', 'statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout'];
    const { rows } = await client.query<Session>(READ_SETTINGS, [names]);
    return rows[0]!;
  } finally {
    await client.end().catch(() => {});
  }
}
