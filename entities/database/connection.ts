/** The first connection to a database that the operator names, which proves the variable. */
import pg from 'pg';

/** Tells whether a database has tables of the service. @throws Error that names the variable and the reason */
export async function reach(variable: string, url: string): Promise<{ hasTables: boolean }> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
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
