/** Connections to the database of the service. Each has the schema of the service. */
import pg from 'pg';

/** PostgreSQL ends a backend whose client does not answer for half a minute. Its locks end with it. */
const KEEP_ALIVE =
  '-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=4 -c tcp_user_timeout=30000';

/** PostgreSQL takes any case, and a hyphen. A backslash before a space makes the space a part of the option. */
const SEARCH_PATH = /search[_-]path=(?:\\.|\S)+/gi;

/**
 * Names the schema of the service in the options of a URL: `public`, unless they name another. Otherwise a schema with the
 * name of the role would hide the tables. So would temporary tables, which PostgreSQL finds first unless the path names their
 * schema. PostgreSQL takes the last of several settings.
 */
export function withSchema(given: string): string {
  const url = new URL(given);
  const options = url.searchParams.get('options') ?? '';
  const all = `-c search_path=public ${KEEP_ALIVE} ${options}`.trim();
  url.searchParams.set(
    'options',
    all.replace(SEARCH_PATH, (path) => `${path},pg_temp`),
  );
  return url.href;
}

/** Makes a connection. A lost connection does not end the process: the waiting query fails. */
export function newClient(url: string, config: pg.ClientConfig = {}): pg.Client {
  const client = new pg.Client({ ...config, connectionString: withSchema(url) });
  return client.on('error', () => {});
}

/** Proves a variable of the operator. Tells whether its database has tables of the service. @throws Error that names the variable and the reason */
export async function reach(variable: string, url: string): Promise<{ hasTables: boolean }> {
  const client = newClient(url);
  try {
    await client.connect();
  } catch (error) {
    throw new Error(`${variable} leads to no database: ${reasonOf(error)}.`);
  }
  const { rows } = await client.query(`select to_regclass('migrations') as name`).finally(() => client.end());
  return { hasTables: rows[0].name !== null };
}

/** Node gives an error without a message if a host has several addresses. */
function reasonOf(error: unknown): string {
  const { message, errors = [] } = error as Error & { errors?: Error[] };
  return message || errors.map((one) => one.message).join(', ');
}
