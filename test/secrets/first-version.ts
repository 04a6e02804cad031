/** A database of the first versions. It lacks the migrations from 0013 on, and its values have no key id. */
import { createCipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { inject } from 'vitest';
import { administer, withDatabase } from '../setup/postgres.ts';

const FOLDER = join(import.meta.dirname, '../../entities/database/migrations');

export async function firstVersion(onEnd: (end: () => Promise<void>) => void): Promise<{ url: string; db: pg.Client }> {
  const name = `freehold_test_${randomBytes(6).toString('hex')}`;
  await administer(inject('postgresUrl'), `create database ${name}`);
  onEnd(() => administer(inject('postgresUrl'), `drop database ${name} with (force)`));
  const url = withDatabase(inject('postgresUrl'), name);
  const db = new pg.Client({ connectionString: url });
  await db.connect();
  onEnd(() => db.end());
  await db.query('create table migrations (id serial primary key, timestamp bigint not null, name varchar not null)');
  const files = readdirSync(FOLDER).filter((file) => file.endsWith('.sql') && file < '0013');
  for (const file of files.sort()) {
    await db.query(readFileSync(join(FOLDER, file), 'utf8'));
    const [, number, noun] = /^(\d{4})-(.+)\.sql$/.exec(file)!;
    const migration = `${noun}-${number!.padStart(13, '0')}`;
    await db.query('insert into migrations (timestamp, name) values ($1, $2)', [Number(number), migration]);
  }
  return { url, db };
}

/** Seals as the first versions did. */
export function sealFirst(key: Buffer, plaintext: string, context: string): Buffer {
  const iv = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(context));
  return Buffer.concat([iv, cipher.update(plaintext, 'utf8'), cipher.final(), cipher.getAuthTag()]);
}

/** The digest of a recovery code as the first versions made it. */
export const firstDigest = (key: Buffer, accountId: string, code: string): Buffer =>
  createHmac('sha256', Buffer.from(hkdfSync('sha256', key, '', 'freehold digest', 32)))
    .update(`recovery_code:${accountId}\0${code}`)
    .digest();
