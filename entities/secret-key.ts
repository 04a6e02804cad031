/** The keys under which the database has sealed values. */
import * as column from './database/column.ts';
import { LOCK_NAME } from './database/lock-name.ts';
import { statement } from './database/statement.ts';
import { columnsOf, entity, type RowOf } from './database/table.ts';
import type { Queryable, Transaction } from './database/transaction.ts';
import type { Vault } from './secrets.ts';

export const SecretKey = entity('secret_key', {
  /** The id that values under the key begin with. */
  id: { ...column.bytes(), primary: true },
  /** A word that the key has sealed. */
  canary: column.bytes(),
  createdAt: column.now(),
});
export type SecretKey = RowOf<typeof SecretKey>;

/** The keys, those in use longest first. */
export const LIST_KEYS = statement(SecretKey.columns)`
  select ${columnsOf(SecretKey)} from secret_key order by created_at, id`;
/** The keys of a process in the names of its connections. PostgreSQL cuts a name after 63 bytes, so four keys fit. */
const NAMED_KEYS = 4;
/** Returns the name of a service's connections. It shows which keys the process has, the current one first. */
export const connectionName = ({ keyIds }: Vault): string =>
  ['freehold', ...keyIds.slice(0, NAMED_KEYS).map(wordOf)].join(' ');
const wordOf = (id: Buffer) => id.toString('base64url');

const LIST_CONNECTION_NAMES = statement({ name: column.text() })`
  select distinct application_name as name from pg_stat_activity
    where datname = current_database() and application_name ~ '^freehold( [-_A-Za-z0-9]{11})+$'`;

/** Whether a process of the service uses the database. */
export const isInUse = async (db: Queryable): Promise<boolean> => (await LIST_CONNECTION_NAMES.all(db)).length > 0;

/** @throws Error if a running process cannot open what the current key seals */
export async function requireAllHave(db: Queryable, { keyId }: Vault): Promise<void> {
  const names = await LIST_CONNECTION_NAMES.all(db);
  if (names.every(({ name }) => name.split(' ').includes(wordOf(keyId)))) return;
  throw new Error(
    'A process that runs now lacks this SECRET_KEY, and could not open what the key seals. ' +
      'First name the key in SECRET_KEY_PREVIOUS of every process.',
  );
}

/** @throws Error if a running process seals under another key than the current one */
export async function requireAllSealUnder(db: Queryable, { keyId }: Vault): Promise<void> {
  const names = await LIST_CONNECTION_NAMES.all(db);
  if (names.every(({ name }) => name.split(' ')[1] === wordOf(keyId))) return;
  throw new Error(
    'A process that runs now still seals under another SECRET_KEY. ' +
      'Restart every process with the new one, and then run this again.',
  );
}

/** Makes transactions that note a key or forget one wait for each other. */
export const lockKeys = (tx: Transaction): Promise<unknown> => LOCK_NAME.all(tx, ['secret key']);

/** Forgets the keys other than $1. */
export const FORGET_OTHER_KEYS = statement({})`
  with others as (select id from secret_key where id <> $1 order by encode(id, 'hex') for update)
    delete from secret_key using others where secret_key.id = others.id`;
