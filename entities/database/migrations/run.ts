/** Runs migrations beside the previous version, which may still serve. */
import { setTimeout as sleep } from 'node:timers/promises';
import { DataSource } from 'typeorm';
import { log } from '../../monitoring/log.ts';
import { withSchema } from '../connection.ts';
import { sqlStateOf } from '../transaction.ts';
import { MIGRATIONS, MIGRATIONS_TABLE } from './index.ts';

/** A migration waits so long for a lock. All requests that need the same table wait behind it. */
const LOCK_MS = 2_000;
/** The pause before the next attempt grows by this, up to the other. Meanwhile the requests go on. */
const [PAUSE_MS, PAUSE_MS_MAX] = [500, 30_000];
/** PostgreSQL's codes of a lock that did not come in time, and of a deadlock. */
const BLOCKED = ['55P03', '40P01'];

/**
 * Runs the missing migrations. Other transactions may hold a table for long, such as that of an export. Then a migration lets
 * the requests through, and tries again until it succeeds.
 */
export async function runMigrations(url: string, migrations = MIGRATIONS): Promise<void> {
  const source = new DataSource({
    type: 'postgres',
    url: withSchema(url),
    poolSize: 1,
    migrations,
    migrationsTableName: MIGRATIONS_TABLE,
    migrationsTransactionMode: 'each',
    applicationName: 'freehold migrations',
    extra: { lock_timeout: LOCK_MS },
    // The other loggers print each failure as a line that is no JSON.
    logger: 'debug',
  });
  await source.initialize();
  try {
    for (let attempt = 1; ; attempt++) {
      const blocked = await attemptOn(source);
      if (!blocked) return;
      log.warn(
        { reason: blocked.message, attempt },
        'A migration waits for other transactions, such as that of an export.',
      );
      await sleep(Math.min(attempt * PAUSE_MS, PAUSE_MS_MAX));
    }
  } finally {
    await source.destroy();
  }
}

/** @returns the error of a migration that other transactions blocked, or undefined if all are done */
async function attemptOn(source: DataSource): Promise<Error | undefined> {
  try {
    await source.runMigrations();
    return undefined;
  } catch (error) {
    if (error instanceof Error && BLOCKED.includes(sqlStateOf(error) ?? '')) return error;
    throw error;
  }
}
