/**
 * SQL with the columns of its rows. Each statement is beside its table. A test prepares each one and compares the names and
 * types of its columns with the declared ones.
 */
import type { Columns, Row } from './table.ts';
import type { Queryable } from './transaction.ts';

export interface Statement<T> {
  readonly text: string;
  /** The columns by their names in TypeScript. */
  readonly columns: Columns;
  /** Returns all rows in the order of the statement. */
  all(db: Queryable, parameters?: unknown[]): Promise<T[]>;
  /** Returns the first row, or undefined. */
  first(db: Queryable, parameters?: unknown[]): Promise<T | undefined>;
}

/** The statements that the loaded modules declare, for the test that prepares them. */
export const STATEMENTS: Statement<unknown>[] = [];

export interface StatementOptions {
  /** PostgreSQL plans the statement once for each connection under this name. Use it where planning costs much. */
  name?: string;
}

/**
 * Declares a statement. Call it once, when its module loads.
 * @param columns the columns of its rows: those of a table (`Server.columns`), or some of `column.ts`; `{}` for no rows
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
