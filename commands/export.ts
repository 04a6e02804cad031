/**
 * `npm run export [-- <file>]`: writes an archive of the database, while the service runs. Without a file, the archive gets a name
 * with the time, in ARCHIVE_DIR or the present folder. Only SECRET_KEY opens it. The command migrates nothing, so it also
 * exports before an upgrade. It notes the backup, unless the database has an earlier version.
 */
import { basename, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { readConfig } from '../config.ts';
import { archiveName } from '../entities/archive/file.ts';
import { archiveKey } from '../entities/archive/key.ts';
import { noteBackup } from '../entities/archive/note.ts';
import { type Written, writeArchive } from '../entities/archive/write.ts';
import { inExistingDatabase } from '../entities/database/command.ts';
import { Database } from '../entities/database/database.ts';
import { migrationNames } from '../entities/database/migrate.ts';
import type { Actor } from '../entities/history/audit.ts';
import { checkKeys } from '../entities/use-secret-key.ts';
import { requiredVaultOf } from '../secret-files.ts';

const ACTOR: Actor = { type: 'operator', id: null, name: 'npm run export', requestId: null };

/** @throws Error with the usage */
function givenFile(): string | undefined {
  const { positionals } = parseArgs({ allowPositionals: true });
  if (positionals.length > 1) throw new Error('Usage: npm run export [-- <file>]');
  return positionals[0];
}

async function exportAll(): Promise<void> {
  const given = givenFile();
  const config = readConfig();
  const file = resolve(given ?? join(config.archiveDir ?? '.', archiveName()));
  const vault = requiredVaultOf(config);
  await inExistingDatabase(config, async ({ url, ownerUrl, place }) => {
    console.log(`Database ${place}\n`);
    await checkKeys(url, vault);
    const written = await writeArchive({ url, key: archiveKey(vault), file });
    const { header, tables, rows, bytes } = written;
    console.log(`${file} has ${tables} tables with ${rows} rows of ${header.createdAt}, in ${bytes} bytes.`);
    console.log('Only SECRET_KEY opens it. Keep that key in another place.');
    if (header.migrations.length === migrationNames().length) await note(url, ownerUrl, file, written);
    else console.log('The database has an earlier version than this program, so nothing notes the backup.');
  });
}

async function note(url: string, ownerUrl: string | undefined, file: string, { bytes, rows }: Written): Promise<void> {
  const db = await Database.open(url, { poolSize: 2, ownerUrl });
  try {
    await db.transaction((tx) => noteBackup(tx, ACTOR, { archive: basename(file), bytes, rows }));
  } finally {
    await db.close();
  }
}

try {
  await exportAll();
} catch (error) {
  console.error(`The service cannot export its database. ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
}
