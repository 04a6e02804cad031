/** The keys under which the database has sealed values. */
import * as column from './database/column.ts';
import { statement } from './database/statement.ts';
import { columnsOf, entity, type RowOf } from './database/table.ts';

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
/** Forgets the keys other than $1. */
export const FORGET_OTHER_KEYS = statement({})`delete from secret_key where id <> $1`;
