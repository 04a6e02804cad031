/** Databases of older versions, for tests of migrations. */
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { inject } from 'vitest';
import { administer, withDatabase } from './postgres.ts';

const FOLDER = join(import.meta.dirname, '../../entities/database/migrations');

/** Makes a database without the migrations from that number on. */
export async function databaseBefore(
  number: string,
  onEnd: (end: () => Promise<void>) => void,
): Promise<{ url: string; db: pg.Client }> {
  const name = `freehold_test_${randomBytes(6).toString('hex')}`;
  await administer(inject('postgresUrl'), `create database ${name}`);
  onEnd(() => administer(inject('postgresUrl'), `drop database ${name} with (force)`));
  const url = withDatabase(inject('postgresUrl'), name);
  const db = new pg.Client({ connectionString: url });
  await db.connect();
  onEnd(() => db.end());
  await db.query('create table migrations (id serial primary key, timestamp bigint not null, name varchar not null)');
  const files = readdirSync(FOLDER).filter((file) => file.endsWith('.sql') && file < number);
  for (const file of files.sort()) {
    await db.query(readFileSync(join(FOLDER, file), 'utf8'));
    const [, digits, noun] = /^(\d{4})-(.+)\.sql$/.exec(file)!;
    const migration = `${noun}-${digits!.padStart(13, '0')}`;
    await db.query('insert into migrations (timestamp, name) values ($1, $2)', [Number(digits), migration]);
  }
  return { url, db };
}
