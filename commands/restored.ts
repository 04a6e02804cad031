/**
 * `npm run restored`: makes an older state of the database safe to use. Workers leave all machines alone until the operator has
 * looked at each engine. `--moved` tells instead that nothing has happened since the database was copied. The service must
 * not run meanwhile.
 */
import { parseArgs } from 'node:util';
import { readConfig } from '../config.ts';
import { inExistingDatabase } from '../entities/database/command.ts';
import { Database } from '../entities/database/database.ts';
import type { Actor } from '../entities/history/audit.ts';
import { isInUse } from '../entities/secret-key.ts';
import { linesOf, noteMove, noteRestore, stoppedLines } from '../provisioning/archives/restored.ts';

const ACTOR: Actor = { type: 'operator', id: null, name: 'npm run restored', requestId: null };
const USAGE = 'Usage: npm run restored [-- --moved]';

function isMoved(): boolean {
  try {
    return parseArgs({ options: { moved: { type: 'boolean', default: false } } }).values.moved;
  } catch {
    throw new Error(USAGE);
  }
}

async function noteGiven(): Promise<void> {
  const moved = isMoved();
  const config = readConfig();
  await inExistingDatabase(config, async ({ url, ownerUrl, place }) => {
    console.log(`Database ${place}\n`);
    const db = await Database.open(url, { poolSize: 2, ownerUrl });
    try {
      if (await isInUse(db)) throw new Error('A process of the service uses the database. Stop all of them first.');
      for (const line of moved ? stoppedLines(await noteMove(db)) : linesOf(await noteRestore(db, ACTOR)))
        console.log(line);
    } finally {
      await db.close();
    }
    if (moved) console.log('The service starts with this database now.');
  });
}

try {
  await noteGiven();
} catch (error) {
  console.error(`The database stays as it is. ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
}
