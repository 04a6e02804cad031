/** The typed notation of tables: an `EntitySchema` whose row type is inferred, since decorators cannot be stripped. */
import { EntitySchema, type EntitySchemaColumnOptions, type EntitySchemaIndexOptions } from 'typeorm';

declare const valueType: unique symbol;
/** A column that remembers the type of its values. */
export type Column<T> = EntitySchemaColumnOptions & { readonly [valueType]?: T };

const asBigInt = {
  from: (value: unknown) => (value === null ? null : BigInt(value as string)),
  to: (value: unknown) => value,
};

export const key = (): Column<string> => ({ type: 'text', primary: true });
export const text = (): Column<string> => ({ type: 'text' });
export const textArray = (): Column<string[]> => ({ type: 'text', array: true, default: () => "'{}'" });
export const oneOf = <const T extends string>(..._values: readonly T[]): Column<T> => ({ type: 'text' });
export const int = (): Column<number> => ({ type: 'int' });
export const real = (): Column<number> => ({ type: 'double precision' });
export const bigint = (): Column<bigint> => ({ type: 'bigint', transformer: asBigInt });
export const boolean = (): Column<boolean> => ({ type: 'boolean' });
export const bytes = (): Column<Buffer> => ({ type: 'bytea' });
export const timestamp = (): Column<Date> => ({ type: 'timestamptz', precision: 3 });
export const now = (): Column<Date> => ({ type: 'timestamptz', precision: 3, default: () => 'now()' });
export const json = <T>(): Column<T> => ({ type: 'jsonb' });
export const inet = (): Column<string> => ({ type: 'inet' });
export const nullable = <T>(column: Column<T>): Column<T | null> => ({ ...column, nullable: true });
export const defaulting = <T>(column: Column<T>, value: string | number): Column<T> => ({
  ...column,
  default: typeof value === 'number' ? value : () => value,
});

// biome-ignore lint/suspicious/noExplicitAny: the value type of a column is what `Row` infers
type Columns = Record<string, Column<any>>;
type Row<C extends Columns> = { [K in keyof C]: C[K] extends Column<infer T> ? T : never };
export type RowOf<E> = E extends EntitySchema<infer T> ? T : never;

const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Declares a table: properties are camelCase, columns snake_case. The migrations create it; a test compares the two. */
export function entity<C extends Columns>(name: string, columns: C, indices: EntitySchemaIndexOptions[] = []) {
  const named = Object.fromEntries(Object.entries(columns).map(([k, column]) => [k, { ...column, name: snake(k) }]));
  return new EntitySchema<Row<C>>({ name, tableName: name, columns: named as never, indices });
}

/** The select list that gives rows of the entity their camelCase names in hand-written SQL. */
export function columnsOf(
  schema: EntitySchema<unknown>,
  table = schema.options.tableName,
  except: readonly string[] = [],
) {
  return Object.keys(schema.options.columns)
    .filter((property) => !except.includes(property))
    .map((property) => `${table}.${snake(property)} as "${property}"`)
    .join(', ');
}
