/** A migration that waits keeps no request waiting, and a start that waits keeps no migration waiting. */
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Database } from '../../entities/database/database.ts';
import { MIGRATION_LOCK } from '../../entities/database/migrate.ts';
import { migrationOf } from '../../entities/database/migrations/index.ts';
import { runMigrations } from '../../entities/database/migrations/run.ts';
import { newDatabaseUrl } from '../setup/database.ts';
import { eventually } from '../setup/freehold.ts';
import { asAdministrator } from '../setup/postgres.ts';

async function newClients() {
  const url = asAdministrator(await newDatabaseUrl());
  const client = async () => {
    const one = new pg.Client({ connectionString: url });
    await one.connect();
    onTestFinished(() => one.end());
    return one;
  };
  return { url, other: await client(), watcher: await client() };
}

const waitsFor = (watcher: pg.Client, kind: string) =>
  eventually(async () => {
    const { rows } = await watcher.query(
      'select from pg_locks where not granted and locktype = $1 and database = (select oid from pg_database where datname = current_database())',
      [kind],
    );
    return rows.length > 0;
  });

describe('A migration', () => {
  it('lets requests through while another transaction keeps its table, and succeeds afterwards', async () => {
    const { url, other, watcher } = await newClients();
    await other.query('begin; select from server');
    let isDone = false;
    const add = migrationOf('9001-words.sql', () => 'alter table server add column words text');
    const done = runMigrations(url, [add]).then(() => (isDone = true));
    await waitsFor(watcher, 'relation');
    await watcher.query('select from server'); // it would wait for the migration, which waits for the other transaction
    expect(isDone).toBe(false);
    await other.query('commit');
    await done;
    expect((await watcher.query('select words from server')).rows).toEqual([]);
  });

  it('tries again after a deadlock with a transaction of the previous version', async () => {
    const { url, other, watcher } = await newClients();
    await other.query('begin; select from server');
    const sql = 'alter table account add column words text; alter table server add column words text';
    const done = runMigrations(url, [migrationOf('9003-words.sql', () => sql)]);
    await waitsFor(watcher, 'relation');
    await other.query('select from account').catch(() => {}); // PostgreSQL may end either
    await other.query('commit');
    await done;
    expect((await watcher.query('select account.words, server.words from account, server')).rows).toEqual([]);
  });

  it('names its file when it fails', async () => {
    const { url } = await newClients();
    const wrong = runMigrations(url, [migrationOf('9004-wrong.sql', () => 'select * from nothing')]);
    await expect(wrong).rejects.toThrow('9004-wrong.sql: relation "nothing" does not exist');
  });

  it('makes an index concurrently: requests write meanwhile, and the rest of an interrupted attempt goes', async () => {
    const { url, other, watcher } = await newClients();
    const hosts = 'create index concurrently server_words on server (hostname)';
    await watcher.query('create table kept (id int); insert into kept values (1), (1)');
    await watcher.query('create unique index concurrently server_words on kept (id)').catch(() => {});
    await other.query('begin; update server set hostname = hostname');
    const done = runMigrations(url, [migrationOf('9002-words.sql', () => hosts)]);
    await eventually(async () => {
      const { rows } = await watcher.query(
        `select from pg_stat_activity where query like 'create index concurrently%' and wait_event = 'virtualxid'`,
      );
      return rows.length > 0;
    });
    await watcher.query('update server set hostname = hostname');
    await other.query('commit');
    await done;
    const { rows } = await watcher.query(
      `select indrelid::regclass::text as table, indisvalid as valid from pg_index where indexrelid = 'server_words'::regclass`,
    );
    expect(rows).toEqual([{ table: 'server', valid: true }]);
  });
});

it('A start that waits for the migrations of another one holds no transaction open', async () => {
  const { url, other, watcher } = await newClients();
  await other.query('select pg_advisory_lock($1)', [MIGRATION_LOCK]);
  const opening = Database.open(url, { poolSize: 2 });
  const asked = () =>
    watcher.query(
      `select state from pg_stat_activity where query like 'select pg_try_advisory_lock%' and datname = current_database()`,
    );
  await eventually(async () => (await asked()).rows.some(({ state }) => state === 'idle'));
  await other.query('select pg_advisory_unlock($1)', [MIGRATION_LOCK]);
  await (await opening).close();
});
