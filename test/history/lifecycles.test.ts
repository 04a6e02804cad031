/** Each stored state has a lifecycle, and only entities/history changes stored states. */
import { describe, expect, it } from 'vitest';
import type { Column } from '../../entities/database/column.ts';
import type { Columns, Table } from '../../entities/database/table.ts';
import { statesBefore } from '../../entities/history/lifecycle.ts';
import { importEntities, sourcesIn, stringsOf } from '../setup/sources.ts';

interface AnyLifecycle {
  table: Table<Columns>;
  state: string;
  transitions: Record<string, readonly string[]>;
  told?: { events: Record<string, string> };
}

const exported = [...new Set((await importEntities()).values())].filter(
  (one) => typeof one === 'object' && one !== null,
);
const tables = exported.filter((one): one is Table<Columns> => 'columns' in one && 'options' in one);
const lifecycles = exported.filter((one): one is AnyLifecycle => 'transitions' in one && 'table' in one);

/** The columns of a table that hold a state: one of some values, which no worker measures. */
const statesOf = ({ columns }: Table<Columns>) =>
  (Object.entries(columns) as [string, Column<string>][])
    .filter(([name, { values, measured }]) => /^(status|state)$/.test(name) && values && !measured)
    .map(([name]) => name);
const nameOf = ({ options }: Table<Columns>) => options.name;

/** The columns that SQL assigns from the place after its `set`, with their values. */
function assignedAt(sql: string, start: number): [column: string, value: string][] {
  const parts = [''];
  let depth = 0;
  for (const [token] of sql.slice(start).matchAll(/'[^']*'|\w+|[^\w']/g)) {
    if (depth === 0 && /^(from|where|returning|\))$/i.test(token)) break;
    if (token === '(') depth++;
    if (token === ')') depth--;
    if (token === ',' && depth === 0) parts.push('');
    else parts[parts.length - 1] += token;
  }
  return parts
    .map((part) => /^\s*(\w+)\s*=\s*([\s\S]*?)\s*$/.exec(part))
    .flatMap((found) => (found ? [[found[1]!, found[2]!]] : []));
}

/** The values that SQL assigns to a column of a table: by an UPDATE, or by an upsert. */
const assignments = (sql: string, table: string, column: string, kind: 'update' | 'upsert'): string[] =>
  [
    ...sql.matchAll(
      kind === 'update'
        ? new RegExp(`\\bupdate\\s+${table}\\b(?:\\s+(?:as\\s+)?\\w+)?\\s+set\\b`, 'gi')
        : new RegExp(`\\binsert\\s+into\\s+${table}\\b(?:(?!\\binsert\\b)[\\s\\S])*?\\bdo\\s+update\\s+set\\b`, 'gi'),
    ),
  ]
    .flatMap(({ index, 0: head }) => assignedAt(sql, index + head.length))
    .flatMap(([assigned, value]) => (assigned === column ? [value] : []));

const sql = ['entities', 'resolvers', 'provisioning', 'facades', 'schema']
  .flatMap(sourcesIn)
  .filter((file) => !file.startsWith('entities/history/'))
  .flatMap((file) => stringsOf(file).map((text) => ({ file, text })));

describe('A lifecycle', () => {
  it('exists for each table with a state', () => {
    const wanted = tables.flatMap((table) => statesOf(table).map((state) => `${nameOf(table)}.${state}`));
    expect(lifecycles.map(({ table, state }) => `${nameOf(table)}.${state}`).sort()).toEqual(wanted.sort());
    expect(wanted.length).toBeGreaterThan(5);
  });

  it('names the states of its column, each with the states that may follow', () => {
    for (const { table, state, transitions, told } of lifecycles) {
      const { values = [] } = table.columns[state]!;
      expect(Object.keys(transitions).sort(), nameOf(table)).toEqual([...values].sort());
      const named = [...Object.values(transitions).flat(), ...Object.keys(told?.events ?? {})];
      expect(
        named.filter((one) => !values.includes(one)),
        nameOf(table),
      ).toEqual([]);
    }
  });

  it('is the only way to move a row: no other UPDATE sets its state', () => {
    const wrong = lifecycles.flatMap(({ table, state }) =>
      sql.flatMap(({ file, text }) =>
        assignments(text, nameOf(table), state, 'update').map(
          (value) => `${file}: ${nameOf(table)}.${state} = ${value}`,
        ),
      ),
    );
    expect(wrong).toEqual([]);
  });

  it('lets an upsert set a state only if the state may follow each other one', () => {
    const found = lifecycles.flatMap((lifecycle) =>
      sql.flatMap(({ file, text }) =>
        assignments(text, nameOf(lifecycle.table), lifecycle.state, 'upsert').map((value) => {
          const before = statesBefore(lifecycle, value.replaceAll("'", ''));
          return { file, value, isAllowed: before.length === Object.keys(lifecycle.transitions).length };
        }),
      ),
    );
    expect(found.filter(({ isAllowed }) => !isAllowed)).toEqual([]);
    expect(found.length).toBeGreaterThan(0);
  });

  it('finds the columns that SQL assigns', () => {
    const text = `update task as t set a = coalesce(x, 'from'), state = 'DEAD', b = case when state = 'READY' then 1 end where state = 'X'`;
    expect(assignments(text, 'task', 'state', 'update')).toEqual([`'DEAD'`]);
    expect(
      assignments(
        `insert into task (id) values (1) on conflict do update set state = 'READY'`,
        'task',
        'state',
        'upsert',
      ),
    ).toEqual([`'READY'`]);
  });
});
