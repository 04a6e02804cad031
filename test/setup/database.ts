/** A database for one test file. */
import { randomBytes } from 'node:crypto';
import { inject, onTestFinished } from 'vitest';
import { Database } from '../../entities/database/database.ts';
import { administer, withDatabase } from './postgres.ts';

/** Copies the migrated template. The given hook drops the copy: `afterAll` in a file, or the end of a test. */
export async function newDatabaseUrl(onEnd: (end: () => Promise<void>) => void = onTestFinished): Promise<string> {
  const url = inject('postgresUrl');
  const name = `freehold_test_${randomBytes(6).toString('hex')}`;
  await administer(url, `create database ${name} template ${inject('templateName')} strategy file_copy`);
  onEnd(() => administer(url, `drop database ${name} with (force)`));
  return withDatabase(url, name);
}

/** Opens a copy of the migrated template. */
export async function newDatabase(
  onEnd: (end: () => Promise<void>) => void = onTestFinished,
  options?: { poolSize: number },
): Promise<Database> {
  const url = await newDatabaseUrl(onEnd);
  const db = await Database.open(url, options);
  onEnd(() => db.close());
  return db;
}
