/**
 * `npm run reseal`: seals all secrets of the database under the current SECRET_KEY, while the service runs. It opens those
 * of earlier keys with SECRET_KEY_PREVIOUS. Ends with 1 if some secrets cannot be opened, and names them. At the end, it
 * rewrites the tables with secrets as the owner of the tables. Without that role, it prints the commands.
 */
import { readConfig } from './config.ts';
import { Database } from './entities/database/database.ts';
import { runningUrl, startEmbeddedPostgres } from './entities/database/embedded-postgres.ts';
import { resealAll } from './entities/reseal.ts';
import { rewriteTables } from './entities/reseal-files.ts';
import { checkKeys, requireUsed } from './entities/use-secret-key.ts';
import { vaultOf } from './secret-files.ts';

async function reseal(): Promise<boolean> {
  const config = readConfig();
  const running = config.databaseUrl ?? (await runningUrl(config.dataDir));
  const embedded = running ? undefined : await startEmbeddedPostgres(config.dataDir);
  const url = running ?? embedded!.url;
  try {
    const vault = await vaultOf(config, (made) => checkKeys(url, made));
    const db = await Database.open(url, { poolSize: 2 });
    const { values, lost, previousUntil } = await requireUsed(db, vault)
      .then(() => resealAll(db, vault))
      .finally(() => db.close());
    const ownerUrl = embedded?.ownerUrl ?? config.migrationDatabaseUrl ?? (db.role?.isOwner ? url : undefined);
    for (const [name, count] of values) console.log(`${name.padEnd(32)} ${count} sealed again`);
    for (const one of lost) console.log(`LOST: no key opens ${one}`);
    if (lost.length) console.log('\nName the key of these secrets in SECRET_KEY_PREVIOUS, and run this again.');
    else if (!previousUntil) console.log('\nSome rows stayed locked. Run this again.');
    else {
      const since = previousUntil.getTime() > Date.now() ? ` after ${previousUntil.toISOString()}` : '';
      console.log(
        '\nAll secrets are under SECRET_KEY. Every process that is connected now seals under it. ' +
          `Remove SECRET_KEY_PREVIOUS${since}.`,
      );
      tellRemaining(await rewriteTables(ownerUrl));
    }
    return previousUntil !== undefined;
  } finally {
    await embedded?.stop();
  }
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
