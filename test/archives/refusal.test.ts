/** An import refuses what it cannot load as a whole, and goes on after an interruption. */
import { once } from 'node:events';
import { copyFileSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { archiveKey } from '../../entities/archive/key.ts';
import { writeArchive } from '../../entities/archive/write.ts';
import { Database } from '../../entities/database/database.ts';
import { useKey } from '../../entities/use-secret-key.ts';
import { digestsOf, emptyDatabase, runCommand, startCommand } from '../setup/archives.ts';
import { newDatabase } from '../setup/database.ts';
import { atEnd } from '../setup/end.ts';
import { asAdministrator } from '../setup/postgres.ts';
import { newFolder, removeFolder } from '../setup/spawn.ts';
import { SECRET_KEY, VAULT } from '../setup/vault.ts';

const folder = newFolder();
atEnd(() => removeFolder(folder));
const db = await newDatabase();
const url = asAdministrator((db.source.options as { url: string }).url);
await useKey(db, VAULT);
await db.query(`insert into event (id, account_id, type, subject, data)
  select 'evt_' || lpad(n::text, 26, '0'), 'acct_one', 'odd', md5(n::text), '{}' from generate_series(1, 50000) n`);
const file = join(folder, 'right.age');
await writeArchive({ url, key: archiveKey(VAULT), file });

/** Imports a file, and returns what the command says. */
async function refusalOf(given: string, environment: Record<string, string> = {}): Promise<string> {
  const target = await emptyDatabase(onTestFinished);
  const { code, output } = await runCommand('import', { ...target.environment, ...environment }, given);
  expect(code).toBe(1);
  expect(await tablesIn(target.url)).toBe(0);
  return output;
}

async function tablesIn(database: string): Promise<number> {
  const client = new pg.Client({ connectionString: database });
  await client.connect();
  const { rows } = await client
    .query(`select count(*)::int as count from pg_class where relnamespace = 'public'::regnamespace`)
    .finally(() => client.end());
  return rows[0].count;
}

function copyOf(change: (bytes: Buffer) => Buffer): string {
  const copy = join(folder, 'copy.age');
  writeFileSync(copy, change(readFileSync(file)));
  return copy;
}

describe('An import refuses, before it changes the database,', () => {
  it.each([
    ['an archive that was cut off', 1_000],
    ['an archive that lacks its last byte', 1],
    ['an archive that lacks its last part', 300_000],
  ])('%s', async (_, missing) => {
    const copy = copyOf((bytes) => bytes.subarray(0, bytes.length - missing));
    expect(await refusalOf(copy)).toContain(`The archive ${copy} is damaged: it was cut off or changed.`);
  });

  it.each(['the first quarter', 'the last quarter'])('an archive with a changed byte in %s', async (where) => {
    const copy = copyOf((bytes) => {
      const at = Math.floor((bytes.length * (where === 'the first quarter' ? 1 : 3)) / 4);
      bytes[at] = bytes[at]! ^ 1;
      return bytes;
    });
    expect(await refusalOf(copy)).toContain(`The archive ${copy} is damaged: it was cut off or changed.`);
  });

  it('an archive whose parts changed places', async () => {
    const copy = copyOf((bytes) => {
      const [part, begin] = [65_536 + 16, bytes.indexOf('\n', bytes.indexOf('\n---') + 1) + 1 + 16];
      const [head, one, two, rest] = [0, begin, begin + part, begin + 2 * part].map((at, n, all) =>
        bytes.subarray(at, all[n + 1]),
      );
      return Buffer.concat([head!, two!, one!, rest!]);
    });
    expect(await refusalOf(copy)).toContain(`The archive ${copy} is damaged`);
  });

  it('an archive under another key', async () => {
    expect(await refusalOf(file, { SECRET_KEY: Buffer.alloc(32, 1).toString('base64') })).toContain(
      `SECRET_KEY does not open the archive ${file}. Set SECRET_KEY, or SECRET_KEY_PREVIOUS, to the key`,
    );
  });

  it('any archive without a key', async () => {
    expect(await refusalOf(file, { SECRET_KEY: '', DATA_DIR: folder })).toContain('SECRET_KEY is not known here.');
  });

  it('a file that is no archive, and a file that is not there', async () => {
    expect(await refusalOf(import.meta.filename)).toContain('is no archive of Freehold.');
    expect(await refusalOf(join(folder, 'none.age'))).toContain('There is no file ');
  });

  it('an archive of a newer version', async () => {
    const later = await emptyDatabase(onTestFinished);
    expect(await runCommand('import', later.environment, file)).toMatchObject({ code: 0 });
    const client = new pg.Client({ connectionString: later.url });
    await client.connect();
    await client.query(`insert into migrations (timestamp, name) values (9999, 'later-0000000009999')`);
    await client.end();
    const newer = join(folder, 'newer.age');
    await writeArchive({ url: later.url, key: archiveKey(VAULT), file: newer });
    expect(await refusalOf(newer)).toContain(
      'A newer version of Freehold wrote the archive: 0.1.0, with the migration later-0000000009999.',
    );
  });

  it('a database that is not empty', async () => {
    const full = await emptyDatabase(onTestFinished);
    expect(await runCommand('import', full.environment, file)).toMatchObject({ code: 0 });
    const before = await digestsOf(full.url);
    const { code, output } = await runCommand('import', full.environment, file);
    expect(code).toBe(1);
    expect(output).toContain('The database is not empty: it has abuse_case.');
    expect(await digestsOf(full.url)).toEqual(before);
  });
});

it('An import that was killed goes on with the next table, and until then no service starts', async () => {
  const target = await emptyDatabase(onTestFinished);
  const killed = startCommand('import', target.environment, file);
  const loaded: string[] = [];
  for await (const line of createInterface(killed.stdout)) {
    const [, table] = /^(\w+): \d+ rows$/.exec(line) ?? [];
    if (!table) continue;
    loaded.push(table);
    // The next table has all events.
    if (table > 'deposit') break;
  }
  killed.kill('SIGKILL');
  await once(killed, 'exit');
  const { DATABASE_URL } = target.environment;
  await expect(Database.open(DATABASE_URL)).rejects.toThrow('An import into this database has not ended.');

  const other = join(folder, 'other.age');
  await writeArchive({ url, key: archiveKey(VAULT), file: other });
  expect((await runCommand('import', target.environment, other)).output).toContain(
    'The database has a part of another archive.',
  );

  const resumed = await runCommand('import', target.environment, '--moved', file);
  expect(resumed.code).toBe(0);
  expect(resumed.output).toContain('An import of this archive was interrupted. It goes on.');
  for (const table of loaded) expect(resumed.output).not.toContain(`\n${table}: `);
  expect(resumed.output).toContain('\nevent: 50000 rows');
  expect(await digestsOf(target.url)).toEqual(await digestsOf(url));
});

it('An import takes an archive from before a new key, with the old one in SECRET_KEY_PREVIOUS', async () => {
  const target = await emptyDatabase(onTestFinished);
  const keys = { SECRET_KEY: Buffer.alloc(32, 1).toString('base64'), SECRET_KEY_PREVIOUS: SECRET_KEY };
  expect(await runCommand('import', { ...target.environment, ...keys }, file)).toMatchObject({ code: 0 });
});

it('A check proves an archive without a database', async () => {
  const right = await runCommand('import', { DATABASE_URL: '' }, '--check', file);
  expect(right).toMatchObject({ code: 0, output: expect.stringContaining('The archive is complete: ') });
  const copy = join(folder, 'cut.age');
  copyFileSync(file, copy);
  truncateSync(copy, 100_000);
  expect(await runCommand('import', { DATABASE_URL: '' }, '--check', copy)).toMatchObject({ code: 1 });
});

it('An export refuses a key under which the database has no secrets, and leaves an existing file', async () => {
  const target = join(folder, 'refused.age');
  const wrong = await runCommand(
    'export',
    { DATABASE_URL: url, SECRET_KEY: Buffer.alloc(32, 1).toString('base64') },
    target,
  );
  expect(wrong).toMatchObject({ code: 1, output: expect.stringContaining('SECRET_KEY is wrong') });
  const before = readFileSync(file);
  expect(await runCommand('export', { DATABASE_URL: url }, file)).toMatchObject({
    code: 1,
    output: expect.stringContaining('exists already'),
  });
  expect(readFileSync(file).equals(before)).toBe(true);
});
