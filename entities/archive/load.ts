/**
 * Loads an archive into an empty database: the migrations that the archive has, its rows, and then the later migrations. Each table
 * is one transaction, which notes that it is done. So an interrupted import goes on with the next table.
 */
import { pipeline } from 'node:stream/promises';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { IMPORT_TABLE, inMigration, migrationNames } from '../database/migrate.ts';
import { MIGRATIONS_TABLE } from '../database/migrations/index.ts';
import type { Vault } from '../secrets.ts';
import { requireOpened } from '../use-secret-key.ts';
import { type Header, SESSION_SQL } from './format.ts';
import { archiveKeys } from './key.ts';
import { checkArchive, type ReadTable, readArchive } from './read.ts';
import { listTables } from './tables.ts';

interface Options {
  /** The database by the role of the service. */
  url: string;
  /** The same by the owner of its tables. Absent: the role of the service owns them. */
  ownerUrl: string | undefined;
  vault: Vault;
  file: string;
  /** Called with each step, as a sentence for the operator. */
  report(line: string): void;
}

/** The mark of the moment when all tables were empty, and no trigger watched them. */
const EMPTIED = 'emptied';

/**
 * Loads an archive. The caller then opens the database as any start does.
 * @throws Error with a sentence for the operator if the archive is not complete, or the database is not empty
 */
export async function loadArchive({ url, ownerUrl, vault, file, report }: Options): Promise<void> {
  const keys = archiveKeys(vault);
  const { header, tables, rows } = await checkArchive(file, keys);
  report(
    `The archive is complete: ${tables} tables with ${rows} rows of ${header.createdAt}, by Freehold ${header.freehold}.`,
  );
  refuseNewer(header);
  requireOpened(
    vault,
    header.canaries.map((canary) => Buffer.from(canary, 'base64')),
  );
  await inMigration(url, ownerUrl, async (owner, migrateTo) => {
    await owner.query(SESSION_SQL);
    const done = await begin(owner, header);
    if (done.size) report('An import of this archive was interrupted. It goes on.');
    await migrateTo(header.migrations.length);
    if (!done.has(EMPTIED)) await empty(owner);
    await loadTables(owner, await readArchive(file, keys), done, report);
    await finish(owner);
  });
}

/** @throws Error if the archive has a migration that this program does not know */
function refuseNewer({ migrations, freehold }: Header): void {
  const known = migrationNames();
  const unknown = migrations.find((name, index) => name !== known[index]);
  if (unknown)
    throw new Error(
      `A newer version of Freehold wrote the archive: ${freehold}, with the migration ${unknown}. Import it with that version or a later one.`,
    );
}

const FIND_RELATION = `
  select relname as name from pg_class where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p', 'v', 'm', 'f')
    order by relname limit 1`;

/**
 * Marks the database as one without all of its rows.
 * @returns the finished parts of an interrupted import of the same archive
 * @throws Error if the database has other tables
 */
async function begin(owner: pg.Client, { id }: Header): Promise<Set<string>> {
  const { rows: found } = await owner.query('select to_regclass($1) as name', [IMPORT_TABLE]);
  if (!found[0].name) {
    const { rows } = await owner.query(FIND_RELATION);
    if (rows.length)
      throw new Error(
        `The database is not empty: it has ${rows[0].name}. An import replaces nothing, so it needs a new database without tables.`,
      );
    await owner.query(`create table ${IMPORT_TABLE} (archive text not null, done text primary key);
      insert into ${IMPORT_TABLE} values (${owner.escapeLiteral(id)}, 'begun')`);
    return new Set();
  }
  const { rows } = await owner.query<{ archive: string; done: string }>(`select archive, done from ${IMPORT_TABLE}`);
  if (rows.some(({ archive }) => archive !== id))
    throw new Error('The database has a part of another archive. Import that one again, or use a new, empty database.');
  return new Set(rows.map(({ done }) => done));
}

const note = (owner: pg.Client, done: string) =>
  owner.query(`insert into ${IMPORT_TABLE} select archive, $1 from ${IMPORT_TABLE} limit 1`, [done]);

const tablesOf = (owner: pg.Client) => listTables(owner, [MIGRATIONS_TABLE, IMPORT_TABLE]);

/** Removes the rows that migrations insert. The triggers must neither refuse the rows of the archive nor add to them. */
async function empty(owner: pg.Client): Promise<void> {
  const names = (await tablesOf(owner)).map(({ name }) => owner.escapeIdentifier(name));
  await within(owner, async () => {
    for (const name of names) await owner.query(`alter table ${name} disable trigger user`);
    await owner.query(`truncate ${names.join(', ')}`);
    await note(owner, EMPTIED);
  });
}

async function loadTables(
  owner: pg.Client,
  { tables }: Awaited<ReturnType<typeof readArchive>>,
  done: Set<string>,
  report: Options['report'],
): Promise<void> {
  const missing = new Set((await tablesOf(owner)).map(({ name }) => name));
  for await (const table of tables) {
    const isKnown = missing.delete(table.table);
    if (!isKnown) report(`WARNING: The service has no table ${table.table}, so the import leaves it out.`);
    if (!isKnown || done.has(table.table)) await table.end();
    else {
      const rows = await within(owner, () => loadTable(owner, table));
      report(`${table.table}: ${rows} rows`);
    }
  }
  if (missing.size) throw new Error(`The archive lacks these tables of its version: ${[...missing].join(', ')}.`);
}

/** @returns the number of rows @throws Error if PostgreSQL took another number of rows than the archive has */
async function loadTable(owner: pg.Client, { table, columns, rows, end }: ReadTable): Promise<number> {
  const columnList = columns.map((column) => owner.escapeIdentifier(column)).join(', ');
  const copy = owner.query(copyFrom(`copy ${owner.escapeIdentifier(table)} (${columnList}) from stdin`));
  await pipeline(rows, copy);
  const written = await end();
  if (copy.rowCount !== written)
    throw new Error(`PostgreSQL took ${copy.rowCount} rows of ${table}, and the archive has ${written}.`);
  await note(owner, table);
  return written;
}

/** Lets the triggers watch again, and lets the service use the database. */
async function finish(owner: pg.Client): Promise<void> {
  const names = (await tablesOf(owner)).map(({ name }) => owner.escapeIdentifier(name));
  await within(owner, async () => {
    for (const name of names) await owner.query(`alter table ${name} enable trigger user`);
    await owner.query(`drop table ${IMPORT_TABLE}`);
  });
  // Without numbers of their rows, PostgreSQL would plan the first statements badly.
  await owner.query(`analyze ${names.join(', ')}`);
}

/** Does work in a transaction. */
async function within<T>(owner: pg.Client, work: () => Promise<T>): Promise<T> {
  await owner.query('begin');
  try {
    const result = await work();
    await owner.query('commit');
    return result;
  } catch (error) {
    await owner.query('rollback').catch(() => {});
    throw error;
  }
}
