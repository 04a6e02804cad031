/** An archive moves an installation to another database, while the service goes on. */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { archiveKey } from '../../entities/archive/key.ts';
import { writeArchive } from '../../entities/archive/write.ts';
import { Database } from '../../entities/database/database.ts';
import { newId } from '../../entities/ids.ts';
import { ADJUSTMENT, available, openBalance, post } from '../../entities/payments/ledger.ts';
import { digestsOf, emptyDatabase, hasPostgres15, runCommand, startPostgres15 } from '../setup/archives.ts';
import { asSuperuser, newDatabase } from '../setup/database.ts';
import { eventually, startFreehold } from '../setup/freehold.ts';
import { databaseBefore } from '../setup/migration.ts';
import { asAdministrator } from '../setup/postgres.ts';
import { newFolder, removeFolder } from '../setup/spawn.ts';
import { VAULT } from '../setup/vault.ts';

function newHome(): string {
  const folder = newFolder();
  onTestFinished(() => removeFolder(folder));
  return folder;
}

const freehold = await startFreehold();

/** Makes rows in many tables. */
async function makeCustomer() {
  const account = await freehold.newAccount();
  await account.topUp(50);
  await account.rest('POST', '/v1/auth/api-keys', { name: 'one', scope: 'servers' });
  await account.rest('POST', '/v1/webhooks', { url: 'https://example.org/hook', event_filter: ['server.*'] });
  await account.rest('POST', '/v1/servers', {
    ...{ service_code: 'vps-1', region: 'ams', os: 'debian-13', hostname: 'one' },
  });
  return account;
}

it('An archive has one moment of a service that writes, and its books balance in a database of another version', async () => {
  const url = (freehold.db.source.options as { url: string }).url;
  await Promise.all([makeCustomer(), makeCustomer()]);
  await freehold.db.query(
    `insert into event (id, account_id, type, subject, data) values ('evt_odd', 'acct_odd', 'odd', $1, $2)`,
    ['\\.\n\\N\t\r\u0001 ä 😀\n\\.', { text: '\\.\n' }],
  );
  await eventually(async () => (await freehold.db.query('select from audit_link limit 1')).length > 0);
  let isOver = false;
  let writes = 0;
  const write = async () => {
    for (; !isOver; writes++) {
      const account = await makeCustomer();
      await account.fund(1);
      await turn();
    }
  };
  const writers = [write(), write()];
  const file = join(newHome(), 'one.age');
  const exported = await runCommand('export', { DATABASE_URL: url }, file);
  isOver = true;
  await Promise.all(writers);
  expect(exported).toMatchObject({ code: 0 });
  expect(exported.output).toMatch(/has \d+ tables with \d+ rows of /);
  expect(writes).toBeGreaterThan(0);
  expect(statSync(file).mode & 0o777).toBe(0o600);

  const server = hasPostgres15 ? await startPostgres15(onTestFinished) : undefined;
  const first = await emptyDatabase(onTestFinished, server);
  const imported = await runCommand('import', first.environment, '--moved', file);
  expect(imported.output).toMatch(
    /The archive is complete[\s\S]*The books balance: \d+ transfers\.[\s\S]*as it was written/,
  );
  expect(imported.code).toBe(0);

  const again = join(newHome(), 'again.age');
  await writeArchive({ url: first.url, key: archiveKey(VAULT), file: again });
  const second = await emptyDatabase(onTestFinished);
  expect(await runCommand('import', second.environment, '--moved', again)).toMatchObject({ code: 0 });
  const digests = await digestsOf(second.url);
  expect(digests).toEqual(await digestsOf(first.url));
  for (const table of ['account', 'transfer', 'server', 'audit_entry', 'audit_link', 'api_key', 'secret_key', 'event'])
    expect(Number.parseInt(digests[table]!, 10), table).toBeGreaterThan(0);
});

it('An archive leaves out unlogged tables, and tells nothing without its key', async () => {
  const url = (freehold.db.source.options as { url: string }).url;
  const account = await makeCustomer();
  const file = join(newHome(), 'one.age');
  const { header, tables } = await writeArchive({ url, key: archiveKey(VAULT), file });
  const text = readFileSync(file);
  for (const word of [account.id, account.email, 'freehold archive', header.id])
    expect(text.includes(word)).toBe(false);
  const [count] = await freehold.db.query<{ count: bigint }>(
    `select count(*) from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' and relpersistence = 'p'`,
  );
  expect(tables).toBe(Number(count!.count) - 1);
});

it('An archive of an earlier version becomes a database of this version', async () => {
  const { url, db } = await databaseBefore('0036', onTestFinished);
  await db.query(`insert into account (id, kind) values ('acct_old', 'AGENT');
    insert into balance (account_id) values ('acct_old');
    insert into catalog_item (code, kind, name, position, details) select 'old', kind, name, position, details
      from catalog_item where kind = 'bastion' limit 1`);
  const file = join(newHome(), 'old.age');
  const exported = await runCommand('export', { DATABASE_URL: url }, file);
  expect(exported.output).toContain('The database has an earlier version');
  expect(exported.code).toBe(0);
  const target = await emptyDatabase(onTestFinished);
  const imported = await runCommand('import', target.environment, file);
  expect(imported.output).toContain('The books balance');
  expect(imported.code).toBe(0);
  const moved = await Database.open(target.environment.DATABASE_URL, { poolSize: 2 });
  onTestFinished(() => moved.close());
  expect(await moved.query(`select code from catalog_item where code = 'old'`)).toEqual([{ code: 'old' }]);
  const [before] = (await db.query('select count(*) from catalog_item')).rows;
  expect(await moved.query('select count(*) from catalog_item')).toEqual([before]);
});

it('An import links the last records of an archive, however long they have waited', async () => {
  const db = await newDatabase();
  const account = newId('acct');
  await db.transaction(async (tx) => {
    await openBalance(tx, account);
    await post(tx, account, {
      ...{ kind: 'topup', debit: ADJUSTMENT, credit: available(account), amountMicros: 5_000_000n },
      ...{ externalKey: 'one', description: 'test' },
    });
  });
  await asSuperuser(
    db,
    `update transfer set created_at = created_at - interval '2 days'; update usage_day set day = day - 2`,
  );
  const file = join(newHome(), 'waiting.age');
  const url = asAdministrator((db.source.options as { url: string }).url);
  await writeArchive({ url, key: archiveKey(VAULT), file });
  const target = await emptyDatabase(onTestFinished);
  const imported = await runCommand('import', target.environment, file);
  expect(imported.output).toContain('So is the ledger: 1 transfer.');
  expect(imported.code).toBe(0);
});

it('An import needs no superuser, and gives the role of the service its rights', async () => {
  const url = asAdministrator((freehold.db.source.options as { url: string }).url);
  const file = join(newHome(), 'one.age');
  await writeArchive({ url, key: archiveKey(VAULT), file });
  const target = await emptyDatabase(onTestFinished);
  expect(await runCommand('import', target.environment, file)).toMatchObject({ code: 0 });
  const db = await Database.open(target.environment.DATABASE_URL, { poolSize: 2 });
  onTestFinished(() => db.close());
  expect(db.role).toMatchObject({ isOwner: false });
  await expect(db.query('delete from transfer')).rejects.toMatchObject({ code: '42501' });
});
