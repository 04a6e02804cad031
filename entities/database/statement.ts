/**
 * SQL with the columns of its rows. A statement lies beside its table; a test prepares each one and compares the names and
 * types of its columns with these.
 */

import type { Columns, Row } from './table.ts';
import type { Queryable } from './transaction.ts';

export interface Statement<T> {
  readonly text: string;
  /** The columns by their names in TypeScript. */
  readonly columns: Columns;
  /** All rows, in the order of the statement. */
  all(db: Queryable, parameters?: unknown[]): Promise<T[]>;
  /** The first row, or undefined without one. */
  first(db: Queryable, parameters?: unknown[]): Promise<T | undefined>;
}

/** Every statement that the loaded modules have declared, for the test that prepares them. */
export const STATEMENTS: Statement<unknown>[] = [];

export interface StatementOptions {
  /** PostgreSQL plans the statement once for each connection under this name. For statements whose planning costs much. */
  name?: string;
}

/**
 * Declares a statement once, when its module is loaded.
 * @param columns of its rows: those of a table (`Server.columns`), or some of `table.ts`; `{}` for no rows
 */
export function statement<C extends Columns>(
  columns: C,
  text: string,
  { name }: StatementOptions = {},
): Statement<Row<C>> {
  const all = (db: Queryable, parameters?: unknown[]) => db.query<Row<C>>(text, parameters, name);
  const declared = { text, columns, all, first: async (db: Queryable, given?: unknown[]) => (await all(db, given))[0] };
  STATEMENTS.push(declared);
  return declared;
}
