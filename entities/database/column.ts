/** The constructors of columns, each with the type of its values. Import them as a namespace: `column.text()`. */
import type { EntitySchemaColumnOptions } from 'typeorm';

declare const valueType: unique symbol;
/** A column that remembers the type of its values. */
export type Column<T> = EntitySchemaColumnOptions & {
  readonly [valueType]?: T;
  /** The values of `oneOf` and `measured`. */
  readonly values?: readonly string[];
  readonly measured?: boolean;
};

const asBigInt = {
  from: (value: unknown) => (value === null ? null : BigInt(value as string)),
  to: (value: unknown) => value,
};

export const key = (): Column<string> => ({ type: 'text', primary: true });
export const text = (): Column<string> => ({ type: 'text' });
export const textArray = (): Column<string[]> => ({ type: 'text', array: true, default: () => "'{}'" });
export const oneOf = <const T extends string>(...values: readonly T[]): Column<T> => ({ type: 'text', values });
/** A state that workers measure. It has no lifecycle: any measurement may follow any other. */
export const measured = <const T extends string>(...values: readonly T[]): Column<T> => ({
  ...oneOf(...values),
  measured: true,
});
export const int = (): Column<number> => ({ type: 'int' });
export const real = (): Column<number> => ({ type: 'double precision' });
export const bigint = (): Column<bigint> => ({ type: 'bigint', transformer: asBigInt });
export const boolean = (): Column<boolean> => ({ type: 'boolean' });
export const bytes = (): Column<Buffer> => ({ type: 'bytea' });
export const timestamp = (): Column<Date> => ({ type: 'timestamptz', precision: 3 });
export const now = (): Column<Date> => ({ type: 'timestamptz', precision: 3, default: () => 'now()' });
export const json = <T>(): Column<T> => ({ type: 'jsonb' });
export const inet = (): Column<string> => ({ type: 'inet' });
