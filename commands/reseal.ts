/**
 * `npm run reseal`: seals all secrets of the database under the current SECRET_KEY, while the service runs. It opens those
 * of earlier keys with SECRET_KEY_PREVIOUS. Ends with 1 if some secrets cannot be opened, and names them. At the end, it
 * rewrites the tables with secrets as the owner of the tables. Without that role, it prints the commands.
 */
import { readConfig } from '../config.ts';
import { inExistingDatabase } from '../entities/database/command.ts';
import { Database } from '../entities/database/database.ts';
import { type Resealed, resealAll } from '../entities/reseal.ts';
import { rewriteTables } from '../entities/reseal-files.ts';
import { checkKeys, requireUsed } from '../entities/use-secret-key.ts';
import { vaultOf } from '../secret-files.ts';

async function reseal(): Promise<boolean> {
  const config = readConfig();
  return inExistingDatabase(config, async ({ url, ownerUrl, place }) => {
    console.log(`Database ${place}\n`);
    const vault = await vaultOf(config, (made) => checkKeys(url, made));
    const db = await Database.open(url, { poolSize: 2 });
    const resealed = await requireUsed(db, vault)
      .then(() => resealAll(db, vault))
      .finally(() => db.close());
    for (const [name, count] of resealed.values) console.log(`${name.padEnd(32)} ${count} sealed again`);
    for (const one of resealed.lost) console.log(`LOST: no key opens ${one}`);
    console.log(`\n${conclusionOf(resealed, config.secretKeyPrevious.length > 0)}`);
    if (!resealed.previousUntil) return false;
    tellRemaining(await rewriteTables(db.role?.isOwner ? url : ownerUrl));
    return true;
  });
}

/** Returns the last sentences for the operator. @param hasPrevious whether SECRET_KEY_PREVIOUS is set */
function conclusionOf({ lost, hadOthers, previousUntil }: Resealed, hasPrevious: boolean): string {
  if (lost.length) return 'Name the key of these secrets in SECRET_KEY_PREVIOUS, and run this again.';
  if (!previousUntil) return 'Some rows stayed locked. Run this again.';
  const done = 'All secrets are under SECRET_KEY. Every process that is connected now seals under it.';
  if (!hasPrevious) return done;
  const since = previousUntil.getTime() > Date.now() ? ` after ${previousUntil.toISOString()}` : '';
  if (hadOthers) return `${done} Remove SECRET_KEY_PREVIOUS${since}.`;
  // The database knows no other key, so the previous key is an earlier one or the next one.
  return (
    'All secrets were under SECRET_KEY already. If this is the new key, ' +
    `remove SECRET_KEY_PREVIOUS${since}. If you still replace it, keep both. First start every process with the new key in SECRET_KEY.`
  );
}

function tellRemaining(commands: readonly string[]): void {
  console.log(
    commands.length
      ? '\nThe files of the database may still hold values under earlier keys. Send this to the database, as a superuser:\n'
      : 'PostgreSQL wrote the tables and the WAL anew, without values under earlier keys.',
  );
  for (const command of commands) console.log(`${command};`);
}

try {
  process.exitCode = (await reseal()) ? 0 : 1;
} catch (error) {
  console.error(`The secrets cannot be sealed again. ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
}
