/** The command that proves the books and the audit log. */
import { execFile } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { Database } from '../../entities/database/database.ts';
import { SYSTEM } from '../../entities/history/audit.ts';
import { linkEntries } from '../../entities/history/audit-link.ts';
import { signHeads } from '../../entities/history/audit-sign.ts';
import { signingKeys } from '../../entities/history/audit-signature.ts';
import { record } from '../../entities/history/record.ts';
import { newId } from '../../entities/ids.ts';
import { ADJUSTMENT, available, openBalance, post } from '../../entities/payments/ledger.ts';
import { asSuperuser, newDatabaseUrl } from '../setup/database.ts';
import { MACHINE, newFolder, removeFolder, spawnService } from '../setup/spawn.ts';
import { SECRET_KEY, VAULT } from '../setup/vault.ts';

const VERIFY = join(import.meta.dirname, '..', '..', 'commands', 'verify.ts');
const verify = (DATABASE_URL: string, ...given: string[]) => run({ DATABASE_URL, SECRET_KEY }, given);
const run = (environment: Record<string, string>, given: string[] = [], file = VERIFY) =>
  new Promise<{ code: number; output: string }>((done) => {
    execFile(process.execPath, [file, ...given], { env: { ...MACHINE, ...environment } }, (error, stdout, stderr) =>
      done({ code: error ? Number(error.code) : 0, output: stdout + stderr }),
    );
  });

it('npm run verify reports balanced books, or the wrong rows', async () => {
  const url = await newDatabaseUrl();
  const db = await Database.open(url, { poolSize: 2 });
  onTestFinished(() => db.close());
  const account = newId('acct');
  await db.transaction((tx) => openBalance(tx, account));
  await db.transaction((tx) =>
    post(tx, account, {
      ...{ kind: 'topup', debit: ADJUSTMENT, credit: available(account), amountMicros: 5_000_000n },
      ...{ externalKey: 'one', description: 'test' },
    }),
  );
  const right = await verify(url);
  expect(right).toMatchObject({ code: 0 });
  expect(right.output).toMatch(/available +5 USD[\s\S]*The books balance: 1 transfer\./);
  expect(right.output).toContain('The audit log is as it was written: 0 entries, 0 signatures.');
  await db.query('update balance set available_micros = available_micros - 1');
  expect(right.output).toMatch(/^Database postgres:\/\/\S+\n/);
  expect(right.output).not.toMatch(/:\/\/[^/@]*:[^/@]*@/);
  const wrong = await verify(url);
  expect(wrong).toMatchObject({ code: 1 });
  expect(wrong.output).toMatch(
    new RegExp(`WRONG: balance: The first balance keeps 4999999 [^\\n]* 1 row:\\n  ${account}\\n`),
  );
});

/** A database with one entry in the audit log of an account. */
async function auditedDatabase() {
  const url = await newDatabaseUrl();
  const db = await Database.open(url, { poolSize: 2 });
  onTestFinished(() => db.close());
  const account = newId('acct');
  await db.transaction((tx) => record(tx, account, account, { type: 'account.resumed', actor: SYSTEM }));
  await db.transaction((tx) => linkEntries(tx, 1));
  return { url, db, account };
}

it('npm run verify names foreign, changed and missing objects of the database, and then proves nothing', async () => {
  const { url, db } = await auditedDatabase();
  await asSuperuser(
    db,
    `create view other as select; alter table audit_entry enable row level security;
      drop trigger transfer_append_only on transfer`,
  );
  const { code, output } = await verify(url);
  expect(code).toBe(1);
  for (const line of [
    'WRONG: The database has a foreign object, which may hide rows: view other. Remove it.',
    'WRONG: An object is not as the service made it: table audit_entry. It is now: r p row security',
    'WRONG: An object of the service is missing: trigger transfer_append_only on transfer.',
  ])
    expect(output.split('\n')).toContain(line);
  expect(output).not.toContain('as it was written');
});

it('npm run verify names the account and the entry that somebody changed in the audit log', async () => {
  const { url, db, account } = await auditedDatabase();
  expect(await verify(url)).toMatchObject({ code: 0 });
  await asSuperuser(db, `update audit_entry set actor_type = 'operator'`);
  const wrong = await verify(url);
  expect(wrong).toMatchObject({ code: 1 });
  expect(wrong.output).toMatch(new RegExp(`WRONG: audit log of ${account}, entry aud_\\w+: The entry was changed`));
});

it('npm run verify finds the embedded database of a running service by itself', async () => {
  const DATA_DIR = newFolder();
  onTestFinished(() => removeFolder(DATA_DIR));
  const service = await spawnService({ DATA_DIR });
  onTestFinished(() => service.stop().then(() => {}));
  expect(await run({ DATA_DIR })).toMatchObject({ code: 0, output: expect.stringContaining('The books balance') });
  expect((await fetch(service.graphql.replace('graphql', 'readyz'))).status).toBe(200);
});

it('npm run verify tells whether the log still has what it had at a digest that somebody kept', async () => {
  const { url, db } = await auditedDatabase();
  const [made] = await db.transaction((tx) => signHeads(tx, signingKeys(VAULT)));
  const { sha256 } = made!;
  const folder = newFolder();
  onTestFinished(() => removeFolder(folder));
  const file = join(folder, 'kept.json');
  writeFileSync(file, JSON.stringify({ number: 1, sha256 }));
  const kept = await verify(url, '--digest', file, '--digest', sha256);
  expect(kept).toMatchObject({ code: 0, output: expect.stringContaining(`it had at the digest ${sha256}.`) });
  expect(kept.output).toMatch(/The signatures are from (\S+Z) to \1\. They show no deletion of later entries\./);
  const keyless = await run({ DATABASE_URL: url, DATA_DIR: folder });
  expect(keyless).toMatchObject({ code: 1, output: expect.stringContaining('SECRET_KEY is not known here') });
  const foreign = await verify(url, '--digest', 'f'.repeat(64));
  expect(foreign).toMatchObject({
    code: 1,
    output: expect.stringContaining(`no signature has the digest ${'f'.repeat(64)}`),
  });
  const nothing = await verify(url, '--digest', 'abc');
  expect(nothing).toMatchObject({ code: 1, output: expect.stringContaining('--digest is a digest of 64') });
});

it.each(['verify', 'reseal'])('npm run %s makes no database, and gives no all-clear without one', async (command) => {
  const DATA_DIR = newFolder();
  onTestFinished(() => removeFolder(DATA_DIR));
  const file = join(import.meta.dirname, '..', '..', 'commands', `${command}.ts`);
  const missing = await run({ DATA_DIR, SECRET_KEY }, [], file);
  expect(missing).toMatchObject({ code: 1, output: expect.stringContaining(`The folder ${DATA_DIR} has no database`) });
  expect(missing.output).toContain('Set DATA_DIR or DATABASE_URL as for the service.');
  expect(readdirSync(DATA_DIR)).toEqual([]);
  const url = await newDatabaseUrl();
  const db = await Database.open(url, { poolSize: 1 });
  await asSuperuser(db, 'drop table migrations').finally(() => db.close());
  const empty = await run({ DATABASE_URL: url, SECRET_KEY }, [], file);
  expect(empty).toMatchObject({ code: 1, output: expect.stringContaining('has no database of the service') });
});

it('npm run verify reads only new records after a whole proof, and refuses to without one', async () => {
  const { url, db, account } = await auditedDatabase();
  const early = await verify(url, '--since-last-proof');
  expect(early).toMatchObject({ code: 1, output: expect.stringContaining('No whole proof has kept a mark yet.') });
  expect(await verify(url)).toMatchObject({ code: 0 });
  await db.transaction((tx) => openBalance(tx, account));
  expect(await verify(url, '--since-last-proof')).toMatchObject({
    code: 0,
    output: expect.stringMatching(
      /The last whole proof was at [\s\S]* of 0 transfers since\.[\s\S]* 1 entry of the audit log/,
    ),
  });
  await db.query('update balance set available_micros = 1');
  const wrong = await verify(url, '--since-last-proof');
  expect(wrong).toMatchObject({
    code: 1,
    output: expect.stringContaining('WRONG: balance: The balances are not those'),
  });
  expect(wrong.output).toContain('Run npm run verify without --since-last-proof');
  const both = await verify(url, '--since-last-proof', '--digest', 'f'.repeat(64));
  expect(both).toMatchObject({ code: 1, output: expect.stringContaining('Usage: ') });
});

it('npm run verify answers an unknown option with its usage', async () => {
  const { code, output } = await verify('postgres://127.0.0.1/any', '--digests', 'abc');
  expect(code).toBe(1);
  expect(output).toMatch(/Usage: npm run verify \[-- --digest/);
});

it('npm run verify explains in a sentence why it failed', async () => {
  const { code, output } = await verify('postgres://nobody@127.0.0.1:1/nothing');
  expect(code).toBe(1);
  expect(output).toMatch(/^The service cannot verify its records\. DATABASE_URL leads to no database: .*ECONNREFUSED/);
});
