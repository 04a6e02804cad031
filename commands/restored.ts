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
import { linesOf, noteMove, noteRestore } from '../provisioning/archives/restored.ts';

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
      if (moved) await noteMove(db);
      else for (const line of linesOf(await noteRestore(db, ACTOR))) console.log(line);
    } finally {
      await db.close();
    }
    console.log(
      moved ? 'The service starts with this database now.' : '\nNow read "After a restore" in docs/operate/running.md.',
    );
  });
}

try {
  await noteGiven();
} catch (error) {
  console.error(`The database stays as it is. ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
}
