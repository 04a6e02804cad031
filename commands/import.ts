/**
 * `npm run import -- <file>`: loads an archive into the empty database of DATABASE_URL, or into a new embedded one. It proves first
 * that the archive is complete. An interrupted import goes on when the command runs again. At the end it proves the
 * records, as `npm run verify` does. `--check` proves the archive alone, and needs no database.
 */
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { readConfig } from '../config.ts';
import { archiveKeys } from '../entities/archive/key.ts';
import { loadArchive } from '../entities/archive/load.ts';
import { checkArchive } from '../entities/archive/read.ts';
import { inNewDatabase } from '../entities/database/command.ts';
import { Database } from '../entities/database/database.ts';
import type { Vault } from '../entities/secrets.ts';
import { requiredVaultOf } from '../secret-files.ts';
import { proveRecords } from './records.ts';

const USAGE = 'Usage: npm run import -- [--check] <file>';

/** @throws Error with the usage */
function given(): { file: string; isCheck: boolean } {
  const { values, positionals } = parseArgs({
    options: { check: { type: 'boolean', default: false } },
    allowPositionals: true,
  });
  const [file, ...others] = positionals;
  if (!file || others.length) throw new Error(USAGE);
  return { file: resolve(file), isCheck: values.check };
}

/** @returns whether the records are right */
async function importAll(): Promise<boolean> {
  const { file, isCheck } = given();
  const config = readConfig();
  const vault = requiredVaultOf(config);
  if (isCheck) return check(file, vault);
  return inNewDatabase(config, async ({ url, ownerUrl, place }) => {
    console.log(`Database ${place}\n`);
    await loadArchive({ url, ownerUrl, vault, file, report: (line) => console.log(line) });
    console.log('All rows are loaded. Now the records are proved, as by npm run verify.\n');
    const db = await Database.open(url, { poolSize: 2, ownerUrl });
    return Boolean(await proveRecords(db, vault).finally(() => db.close()));
  });
}

async function check(file: string, vault: Vault): Promise<true> {
  const { header, tables, rows } = await checkArchive(file, archiveKeys(vault));
  console.log(
    `The archive is complete: ${tables} tables with ${rows} rows of ${header.createdAt}, by Freehold ${header.freehold}.`,
  );
  return true;
}

try {
  process.exitCode = (await importAll()) ? 0 : 1;
} catch (error) {
  console.error(`The service cannot import the archive. ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
}
