/** The service behind a real PgBouncer in transaction mode. */
import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { Database } from '../../entities/database/database.ts';
import { checkPooler } from '../../entities/database/pooler.ts';
import { connectionName, isInUse } from '../../entities/secret-key.ts';
import { Vault } from '../../entities/secrets.ts';
import { asOwner, newDatabaseUrl } from '../setup/database.ts';
import { atEnd } from '../setup/end.ts';
import { eventually, startFreehold } from '../setup/freehold.ts';
import { hasPgBouncer, startPgBouncer } from '../setup/programs/pgbouncer.ts';

describe.skipIf(!hasPgBouncer)('With DATABASE_POOLER_URL', async () => {
  const url = hasPgBouncer ? await newDatabaseUrl() : '';
  const poolerUrl = hasPgBouncer ? await startPgBouncer(url, 3, atEnd) : '';

  it('the start names the settings that the role lacks, and takes the named statements', async () => {
    const refusal: Error = await checkPooler(url, poolerUrl).then(
      () => new Error('It was not refused'),
      (error) => error,
    );
    const [, ...statements] = refusal.message.split('\n');
    expect(refusal.message).toMatch(/^The sessions of DATABASE_POOLER_URL lack settings\./);
    expect(statements.map((one) => / set (\w+) = /.exec(one)?.[1])).toEqual([
      ...['search_path', 'statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout'],
    ]);
    const direct = await Database.open(url);
    for (const statement of statements) await asOwner(direct, statement);
    await direct
      .query(`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`)
      .catch(() => {});
    await direct.close();
    await eventually(
      () =>
        checkPooler(url, poolerUrl).then(
          () => true,
          () => false,
        ),
      10,
    );
  });

  it('the start refuses a pooler before another database', async () => {
    const other = await newDatabaseUrl();
    await expect(checkPooler(other, poolerUrl)).rejects.toThrow('names another database');
  });

  it('many customers order at once, over few sessions and without prepared statements', async () => {
    const freehold = await startFreehold({ DATABASE_URL: url, DATABASE_POOLER_URL: poolerUrl });
    const accounts = await Promise.all(Array.from({ length: 6 }, () => freehold.newAccount()));
    await Promise.all(accounts.map((account) => account.fund(500)));
    const orders = await Promise.all(
      accounts.flatMap(({ rest }) =>
        Array.from({ length: 4 }, async (_, i) => {
          const { body } = await rest('POST', '/v1/servers', { service_code: 'vps-1', hostname: `web-${i}` });
          const path = `/v1/servers/${body.order_number}?wait_for=running`;
          return (await rest('GET', path)).body.status;
        }),
      ),
    );
    expect(new Set(orders)).toEqual(new Set(['running']));
    // A statement that runs often would have a name by now.
    for (let i = 0; i < 80; i++) expect((await accounts[0]!.rest('GET', '/v1/servers')).status).toBe(200);
  });

  it('the connections of a process that has ended do not look like the process', async () => {
    const vault = new Vault(randomBytes(32));
    const direct = await Database.open(url);
    const db = await Database.open(url, { poolerUrl, name: connectionName(vault) });
    await db.query('select 1');
    expect(await isInUse(direct)).toBe(true);
    await db.close();
    await eventually(async () => !(await isInUse(direct)), 10);
    await direct.close();
  });

  it('PostgreSQL ends long statements and forgotten transactions', async () => {
    const db = await Database.open(url, { poolerUrl, poolSize: 2 });
    const settings = ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout'];
    const read = async (name: string) => (await db.query<Record<string, string>>(`show ${name}`))[0];
    expect(await Promise.all(settings.map(read))).toEqual([
      { statementTimeout: '20s' },
      { lockTimeout: '25s' },
      { idleInTransactionSessionTimeout: '30s' },
    ]);
    await db.close();
  });
});
