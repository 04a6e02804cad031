/** The typed notation of tables: an `EntitySchema` with an inferred row type. Node.js cannot strip decorators. */
import { EntitySchema, type FindOptionsWhere, type ObjectLiteral } from 'typeorm';
import type { Column } from './column.ts';
import type { Queryable, Transaction } from './transaction.ts';

export const nullable = <T>(column: Column<T>): Column<T | null> => ({ ...column, nullable: true });
export const defaulting = <T>(column: Column<T>, value: string | number): Column<T> => ({
  ...column,
  default: typeof value === 'number' ? value : () => value,
});

// biome-ignore lint/suspicious/noExplicitAny: `Row` infers the value type of a column
export type Columns = Record<string, Column<any>>;
/** The row of these columns, by their names in TypeScript. */
export type Row<C extends Columns> = { [K in keyof C]: C[K] extends Column<infer T> ? T : never };
export type RowOf<E> = E extends EntitySchema<infer T> ? T : never;

export const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** A table with its columns. */
export type Table<C extends Columns> = EntitySchema<Row<C>> & { readonly columns: C };

/** The tables that the loaded modules declare. `tables.ts` loads all of them. */
export const TABLES: EntitySchema<unknown>[] = [];

/** Declares a table: properties are camelCase, columns snake_case. A test compares it with the migrations. */
export function entity<C extends Columns>(name: string, columns: C): Table<C> {
  const named = Object.fromEntries(Object.entries(columns).map(([k, column]) => [k, { ...column, name: snake(k) }]));
  const schema = new EntitySchema<Row<C>>({ name, tableName: name, columns: named as never });
  TABLES.push(schema);
  return Object.assign(schema, { columns });
}

/** Returns the select list of a table for hand-written SQL. */
export function columnsOf(
  schema: EntitySchema<unknown>,
  table = schema.options.tableName,
  except: readonly string[] = [],
): string {
  return Object.keys(schema.options.columns)
    .filter((property) => !except.includes(property))
    .map((property) => `${table}.${snake(property)}`)
    .join(', ');
}

type Where<T> = FindOptionsWhere<T & ObjectLiteral>;
type Values<T> = Partial<T>;
/** New values of columns, but not of a state. */
export type ChangedColumns<T> = Values<T> & { status?: never; state?: never };
const of = <T>(table: EntitySchema<T>) => table as unknown as EntitySchema<ObjectLiteral>;

/** Returns the row that fits, or undefined. */
export const find = async <T>(db: Queryable, table: EntitySchema<T>, where: Where<T>): Promise<T | undefined> =>
  ((await db.manager.findOneBy(of(table), where)) ?? undefined) as T | undefined;

/** Returns whether a row fits. */
export const exists = <T>(db: Queryable, table: EntitySchema<T>, where: Where<T>): Promise<boolean> =>
  db.manager.existsBy(of(table), where);

/** Returns all rows that fit, in the given order. */
export const findAll = async <T>(
  db: Queryable,
  table: EntitySchema<T>,
  where: Where<T>,
  order: { [K in keyof T]?: 'ASC' | 'DESC' } = {},
): Promise<T[]> => (await db.manager.find(of(table), { where, order: order as never })) as T[];

/** Returns the row that fits, or undefined, and locks it until the transaction ends. Keep the order of `lock-order.ts`. */
export const lock = async <T>(tx: Transaction, table: EntitySchema<T>, where: Where<T>): Promise<T | undefined> =>
  ((await tx.manager.findOne(of(table), { where, lock: { mode: 'pessimistic_write' } })) ?? undefined) as T | undefined;

/** Inserts rows. The database fills omitted columns with their defaults. */
export const insert = async <T>(
  tx: Transaction,
  table: EntitySchema<T>,
  rows: Values<T> | Values<T>[],
): Promise<void> => {
  await tx.manager.insert(of(table), rows as never);
};

/** Changes the rows that fit, but not their states: `history/transition.ts` moves those. @returns the number of rows */
export const update = async <T>(
  tx: Transaction,
  table: EntitySchema<T>,
  where: Where<T>,
  set: ChangedColumns<T>,
): Promise<number> => (await tx.manager.update(of(table), where, set as never)).affected ?? 0;

/** Deletes the rows that fit. @returns the number of rows */
export const remove = async <T>(tx: Transaction, table: EntitySchema<T>, where: Where<T>): Promise<number> =>
  (await tx.manager.delete(of(table), where)).affected ?? 0;
