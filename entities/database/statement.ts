/**
 * SQL with the columns of its rows. Each statement is beside its table. A test prepares each one and compares the names and
 * types of its columns with the declared ones.
 */
import { keepPrepared } from './prepared.ts';
import type { Columns, Row } from './table.ts';
import type { Queryable, Transaction } from './transaction.ts';

export interface Statement<T> {
  readonly text: string;
  /** The columns by their names in TypeScript. */
  readonly columns: Columns;
  /** Returns all rows in the order of the statement. */
  all(db: Queryable, parameters?: unknown[]): Promise<T[]>;
  /** Returns the first row, or undefined. */
  first(db: Queryable, parameters?: unknown[]): Promise<T | undefined>;
  /** Returns all rows in pages of so many. Only one page is in memory at a time. */
  pages(tx: Transaction, parameters: unknown[], size: number): AsyncGenerator<T[]>;
}

/** The statements that the loaded modules declare, for the test that prepares them. */
export const STATEMENTS: Statement<unknown>[] = [];

export interface StatementOptions {
  /**
   * PostgreSQL plans the statement at each execution. It needs that if the caller may leave filters out: the best index
   * depends on the filters.
   */
  replans?: boolean;
}

/**
 * Declares a statement: its columns, and then its SQL as a template. Call it once, when its module loads. The parts of the
 * template are SQL, too; the values come later, as `$1` and so on.
 * @param columns the columns of its rows: those of a table (`Server.columns`), or some of `column.ts`; `{}` for no rows
 */
export const statement =
  <C extends Columns>(columns: C, { replans = false }: StatementOptions = {}) =>
  (sql: TemplateStringsArray, ...parts: (string | number)[]): Statement<Row<C>> => {
    const text = String.raw({ raw: sql }, ...parts).trim();
    const all = (db: Queryable, given?: unknown[]) => db.query<Row<C>>(text, given);
    const declared = {
      text,
      columns,
      all,
      first: async (db: Queryable, given?: unknown[]) => (await all(db, given))[0],
      pages: (tx: Transaction, given: unknown[], size: number) => pagesOf<Row<C>>(tx, text, given, size),
    };
    STATEMENTS.push(declared);
    if (!replans) keepPrepared(text);
    return declared;
  };

/** Cursors of this process. A transaction may read several statements at once. */
let cursors = 0;

async function* pagesOf<T>(tx: Transaction, text: string, given: unknown[], size: number): AsyncGenerator<T[]> {
  const cursor = `pages_${++cursors}`;
  // PostgreSQL would plan for the first tenth of the rows, which costs more for all of them.
  await tx.query('set local cursor_tuple_fraction = 1');
  await tx.query(`declare ${cursor} no scroll cursor for ${text}`, given);
  for (;;) {
    const page = await tx.query<T>(`fetch ${size} from ${cursor}`);
    if (page.length) yield page;
    if (page.length < size) break;
  }
  await tx.query(`close ${cursor}`);
}
