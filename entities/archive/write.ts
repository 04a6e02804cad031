/** Writes an archive of a database: all rows of one moment, while the service goes on. */
import { createHash, randomUUID } from 'node:crypto';
import { createWriteStream, readFileSync } from 'node:fs';
import { rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createZstdCompress } from 'node:zlib';
import type pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { newClient } from '../database/connection.ts';
import { MIGRATIONS_TABLE } from '../database/migrations/index.ts';
import { PARTIAL } from './file.ts';
import { CHUNK_BYTES, FORMAT, type Header, lineOf, ROWS_END, SESSION_SQL } from './format.ts';
import { checkArchive } from './read.ts';
import { sealed } from './seal.ts';
import { listTables, type StoredTable } from './tables.ts';

/** A written archive. */
export interface Written {
  header: Header;
  tables: number;
  rows: number;
  /** The size of the file. */
  bytes: number;
}

interface Options {
  /** The database, by a role that reads all tables. */
  url: string;
  /** Of the archive: see `archiveKey`. */
  key: Uint8Array;
  file: string;
}

/**
 * Writes an archive, and proves it. Then the file appears, which only its owner can read. An error leaves no file.
 * @throws Error if the file exists
 */
export async function writeArchive({ url, key, file }: Options): Promise<Written> {
  if (await exists(file)) throw new Error(`The file ${file} exists already.`);
  const partial = file + PARTIAL;
  const client = newClient(url, { application_name: 'freehold archive' });
  const written = { tables: 0, rows: 0 };
  try {
    await client.connect();
    // A process that died may have left it.
    await rm(partial, { force: true });
    const { header, tables } = await begin(client);
    await pipeline(
      textOf(client, header, tables, written),
      createZstdCompress({ chunkSize: CHUNK_BYTES }),
      (compressed: AsyncIterable<Uint8Array>) => sealed(key, compressed),
      createWriteStream(partial, { mode: 0o600, flags: 'wx', flush: true }),
    );
    await client.end();
    await prove(partial, key, written);
    const { size: bytes } = await stat(partial);
    await rename(partial, file);
    return { header, ...written, bytes };
  } catch (error) {
    // A COPY that is under way would keep the connection.
    drop(client);
    await rm(partial, { force: true });
    throw error;
  }
}

/** Reads the archive again, as an import does. @throws Error if something is missing or changed */
async function prove(file: string, key: Uint8Array, written: { tables: number; rows: number }): Promise<void> {
  const { tables, rows } = await checkArchive(file, [key]);
  if (tables !== written.tables || rows !== written.rows)
    throw new Error(`The archive has ${rows} rows, but ${written.rows} were written.`);
}

/** Returns the version of this program. */
const version = (): string =>
  JSON.parse(readFileSync(join(import.meta.dirname, '..', '..', 'package.json'), 'utf8')).version;

const exists = (file: string) =>
  stat(file).then(
    () => true,
    () => false,
  );

const drop = (client: pg.Client) => (client as unknown as { connection: pg.Connection }).connection.stream.destroy();

/** Begins the transaction in which the client sees one moment. */
async function begin(client: pg.Client): Promise<{ header: Header; tables: StoredTable[] }> {
  await client.query(SESSION_SQL);
  await client.query('begin transaction isolation level repeatable read, read only');
  const { rows: moment } = await client.query('select now() as at');
  const { rows: migrations } = await client.query(`select name from ${MIGRATIONS_TABLE} order by id`);
  const tables = await listTables(client, [MIGRATIONS_TABLE]);
  const { rows: keys } = tables.some(({ name }) => name === 'secret_key')
    ? await client.query('select canary from secret_key order by created_at, id')
    : { rows: [] };
  return {
    header: {
      format: FORMAT,
      id: randomUUID(),
      freehold: version(),
      createdAt: moment[0].at.toISOString(),
      migrations: migrations.map(({ name }) => name),
      canaries: keys.map(({ canary }) => canary.toString('base64')),
    },
    tables,
  };
}

async function* textOf(
  client: pg.Client,
  header: Header,
  tables: StoredTable[],
  written: { tables: number; rows: number },
): AsyncGenerator<string | Buffer> {
  yield lineOf(header);
  for (const { name, columns } of tables) {
    yield lineOf({ table: name, columns });
    const columnList = columns.map((column) => client.escapeIdentifier(column)).join(', ');
    const copy = client.query(copyTo(`copy ${client.escapeIdentifier(name)} (${columnList}) to stdout`));
    const digest = createHash('sha256');
    for await (const chunk of copy as AsyncIterable<Buffer>) {
      digest.update(chunk);
      yield chunk;
    }
    // The rows end before PostgreSQL tells their number.
    await client.query('select');
    yield ROWS_END + lineOf({ rows: copy.rowCount, sha256: digest.digest('hex') });
    written.tables++;
    written.rows += copy.rowCount;
  }
  yield lineOf({ tables: tables.length });
}
