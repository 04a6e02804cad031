/** Sealed columns. Each is declared beside its table, so that `npm run reseal` finds all of them. */
import type { EntitySchema } from 'typeorm';
import { HEADER_BYTES, type Vault } from '../secrets.ts';
import * as column from './column.ts';
import { type Statement, statement } from './statement.ts';
import { snake } from './table.ts';

export interface SealedColumn {
  /** Such as `totp.seed`. */
  readonly name: string;
  readonly table: string;
  /**
   * @param key the key of the row: the value does not open in another
   * @param secret of a caller, without which the value does not open either
   */
  seal(vault: Vault, plaintext: string, key: string, secret?: string): Buffer;
  /** @throws Error if the value was changed or moved, or the vault lacks its key, or for another secret */
  open(vault: Vault, sealed: Buffer, key: string, secret?: string): string;
  /** The context of a row's value. */
  contextOf(key: string): string;
  /** The values that do not begin with $1. In the order of their keys, it returns the first $3 after the key $2. */
  readonly LIST_OTHERS: Statement<{ key: string; sealed: Buffer }>;
  /** Replaces the values $2 of the keys $1 by $3, except those that changed or that another transaction has locked. */
  readonly REPLACE: Statement<{ key: string }>;
}

/** The sealed columns that the loaded modules declare. `tables.ts` loads all of them. */
export const SEALED_COLUMNS: SealedColumn[] = [];

/**
 * Declares a sealed column.
 * @param keySql the key of its row as text: a column, or an expression
 * @param sealedIn the first name of the table, if it has changed: the values do not open under another
 */
export function sealedColumn<T>(
  table: EntitySchema<T>,
  property: keyof T & string,
  keySql: string,
  sealedIn?: string,
): SealedColumn {
  const tableName = table.options.tableName!;
  const sealed = snake(property);
  const name = `${tableName}.${sealed}`;
  const contextOf = (key: string) => `${sealedIn ?? tableName}.${sealed}:${key}`;
  const declared: SealedColumn = {
    name,
    table: tableName,
    contextOf,
    seal: (vault, plaintext, key, secret) =>
      secret === undefined ? vault.seal(plaintext, contextOf(key)) : vault.sealFor(secret, plaintext, contextOf(key)),
    open: (vault, value, key, secret) =>
      secret === undefined ? vault.open(value, contextOf(key)) : vault.openFor(secret, value, contextOf(key)),
    LIST_OTHERS: statement({ key: column.text(), sealed: column.bytes() })`
      select ${keySql} as key, ${sealed} as sealed from ${tableName}
      where substring(${sealed} for ${HEADER_BYTES}) <> $1::bytea and ${keySql} > $2::text order by ${keySql} limit $3`,
    REPLACE: statement({ key: column.text() })`
      with given as (select * from unnest($1::text[], $2::bytea[], $3::bytea[]) as given (key, before, after)),
        free as (select ${keySql} as key from ${tableName} where ${keySql} = any($1::text[]) for update skip locked)
      update ${tableName} set ${sealed} = after from given join free using (key)
      where ${keySql} = key and ${sealed} = before returning key`,
  };
  SEALED_COLUMNS.push(declared);
  return declared;
}
