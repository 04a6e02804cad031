/** The database of a command such as `npm run verify`. Only an import makes a database: to others, an empty one would look sound. */
import { resolve } from 'node:path';
import { reach } from './connection.ts';
import { findCluster } from './embedded/cluster.ts';
import { runningUrl, startEmbeddedPostgres } from './embedded/postgres.ts';

interface Settings {
  databaseUrl?: string | undefined;
  migrationDatabaseUrl?: string | undefined;
  dataDir: string;
}

interface GivenDatabase {
  url: string;
  ownerUrl: string | undefined;
  /** The folder of the cluster, or the URL without its password. */
  place: string;
}

/**
 * Does the work in the database of the service. Starts the embedded database meanwhile if it does not run.
 * @throws Error if there is none
 */
export async function inExistingDatabase<T>(
  settings: Settings,
  work: (given: GivenDatabase) => Promise<T>,
): Promise<T> {
  const { databaseUrl, migrationDatabaseUrl, dataDir } = settings;
  const place = databaseUrl ? withoutPassword(databaseUrl) : findCluster(dataDir);
  if (!place) throw noDatabase(`The folder ${resolve(dataDir)}`);
  const running = databaseUrl ?? (await runningUrl(dataDir));
  const embedded = running ? undefined : await startEmbeddedPostgres(dataDir);
  const url = running ?? embedded!.url;
  try {
    if (migrationDatabaseUrl) await reach('MIGRATION_DATABASE_URL', migrationDatabaseUrl);
    const { hasTables } = await reach(databaseUrl ? 'DATABASE_URL' : place, url);
    if (!hasTables) throw noDatabase(place);
    return await work({ url, ownerUrl: embedded?.ownerUrl ?? migrationDatabaseUrl, place });
  } finally {
    await embedded?.stop();
  }
}

/**
 * Does the work in the database of DATABASE_URL, also without tables. Otherwise it makes an embedded one, and starts that meanwhile.
 * @throws Error if a service uses the embedded database
 */
export async function inNewDatabase<T>(settings: Settings, work: (given: GivenDatabase) => Promise<T>): Promise<T> {
  const { databaseUrl, migrationDatabaseUrl, dataDir } = settings;
  if (migrationDatabaseUrl) await reach('MIGRATION_DATABASE_URL', migrationDatabaseUrl);
  if (databaseUrl) {
    await reach('DATABASE_URL', databaseUrl);
    return work({ url: databaseUrl, ownerUrl: migrationDatabaseUrl, place: withoutPassword(databaseUrl) });
  }
  const embedded = await startEmbeddedPostgres(dataDir);
  try {
    return await work({ url: embedded.url, ownerUrl: embedded.ownerUrl, place: embedded.folder });
  } finally {
    await embedded.stop();
  }
}

const noDatabase = (place: string) =>
  new Error(`${place} has no database of the service. Set DATA_DIR or DATABASE_URL as for the service.`);

function withoutPassword(given: string): string {
  const url = new URL(given);
  url.password = '';
  url.searchParams.delete('password');
  return url.href;
}
