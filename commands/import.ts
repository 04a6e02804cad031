/**
 * `npm run import -- <file>`: loads an archive into the empty database of DATABASE_URL, or into a new embedded one. It proves first
 * that the archive is complete. An interrupted import goes on when the command runs again. At the end it proves the
 * records, as `npm run verify` does. `--check` proves the archive alone, and needs no database.
 *
 * The service then knows that it lacks what happened since, as after `npm run restored`. `--moved` tells that nothing happened.
 */
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { readConfig } from '../config.ts';
import { archiveKeys } from '../entities/archive/key.ts';
import { loadArchive } from '../entities/archive/load.ts';
import { checkArchive } from '../entities/archive/read.ts';
import { inNewDatabase } from '../entities/database/command.ts';
import { Database } from '../entities/database/database.ts';
import type { Actor } from '../entities/history/audit.ts';
import type { Vault } from '../entities/secrets.ts';
import { linesOf, noteMove, noteRestore } from '../provisioning/archives/restored.ts';
import { requiredVaultOf } from '../secret-files.ts';
import { proveRecords } from './records.ts';

const ACTOR: Actor = { type: 'operator', id: null, name: 'npm run import', requestId: null };
const USAGE = 'Usage: npm run import -- [--check | --moved] <file>';

/** @throws Error with the usage */
function given(): { file: string; isCheck: boolean; isMoved: boolean } {
  const { values, positionals } = parseArgs({
    options: { check: { type: 'boolean', default: false }, moved: { type: 'boolean', default: false } },
    allowPositionals: true,
  });
  const [file, ...others] = positionals;
  const { check: isCheck, moved: isMoved } = values;
  if (!file || others.length || (isCheck && isMoved)) throw new Error(USAGE);
  return { file: resolve(file), isCheck, isMoved };
}

/** @returns whether the records are right */
async function importAll(): Promise<boolean> {
  const { file, isCheck, isMoved } = given();
  const config = readConfig();
  const vault = requiredVaultOf(config);
  if (isCheck) return check(file, vault);
  return inNewDatabase(config, async ({ url, ownerUrl, place }) => {
    console.log(`Database ${place}\n`);
    await loadArchive({ url, ownerUrl, vault, file, report: (line) => console.log(line) });
    const db = await Database.open(url, { poolSize: 2, ownerUrl });
    try {
      if (isMoved) await noteMove(db);
      else for (const line of linesOf(await noteRestore(db, ACTOR))) console.log(line);
      console.log('All rows are loaded. Now the records are proved, as by npm run verify.\n');
      return Boolean(await proveRecords(db, vault));
    } finally {
      await db.close();
    }
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
