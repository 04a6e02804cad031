/** A database for one test file. */
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';
import { Database } from '../../entities/database/database.ts';
import type { Queryable } from '../../entities/database/transaction.ts';
import { atEnd } from './end.ts';
import { byRole, withDatabase } from './postgres.ts';

/** The connections that copy and drop databases. The files of a process share them. */
let administrators: pg.Pool | undefined;

/** Copies the migrated template. The copy is dropped at the end. */
export async function newDatabaseUrl(onEnd: (end: () => Promise<void>) => void = atEnd): Promise<string> {
  const url = inject('postgresUrl');
  const name = `freehold_test_${randomBytes(6).toString('hex')}`;
  administrators ??= new pg.Pool({ connectionString: url, allowExitOnIdle: true });
  const server = administrators;
  await server.query(`create database ${name} template ${inject('templateName')} strategy file_copy`);
  onEnd(async () => void (await server.query(`drop database ${name} with (force)`)));
  return byRole(withDatabase(url, name));
}

/** Sends SQL as a superuser and without triggers, as a thief of the whole server could. */
export const asSuperuser = (db: Queryable, sql: string, parameters: unknown[] = []): Promise<void> =>
  send(db, sql, parameters, 'replica');

/** Sends SQL as a role that owns the tables, whose triggers watch it. */
export const asOwner = (db: Queryable, sql: string, parameters: unknown[] = []): Promise<void> =>
  send(db, sql, parameters, 'origin');

async function send(db: Queryable, sql: string, parameters: unknown[], as: 'replica' | 'origin'): Promise<void> {
  const [found] = await db.query<{ name: string }>('select current_database() as name');
  const client = new pg.Client({ connectionString: withDatabase(inject('postgresUrl'), found!.name) });
  await client.connect();
  try {
    await client.query(`set session_replication_role = ${as}`);
    await client.query(sql, parameters);
  } finally {
    await client.end();
  }
}

/** Ends answers from memory, as an act of the operator does. A test that changes rows by SQL needs it. */
export const actOfOperator = ({ bus }: Pick<Database, 'bus'>): void =>
  bus.publish([{ kind: 'operatorEvent', accountId: '', id: null }]);

/** Empties tables, also append-only ones, and those that refer to them. */
export const truncate = (db: Queryable, tables: string): Promise<void> => asSuperuser(db, `truncate ${tables} cascade`);

/** Opens a copy of the migrated template. */
export async function newDatabase(
  onEnd: (end: () => Promise<void>) => void = atEnd,
  options?: { poolSize: number },
): Promise<Database> {
  const url = await newDatabaseUrl(onEnd);
  const db = await Database.open(url, options);
  onEnd(() => db.close());
  return db;
}
