/** PostgreSQL prepares each statement of the entities, and its columns are those that TypeScript expects. */
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Column } from '../../entities/database/column.ts';
import { STATEMENTS, type Statement, statement } from '../../entities/database/statement.ts';
import { snake } from '../../entities/database/table.ts';
import type { Queryable } from '../../entities/database/transaction.ts';
import { asOwner, newDatabase, newDatabaseUrl } from '../setup/database.ts';
import { atEnd } from '../setup/end.ts';
import { importEntities, sourcesIn, stringsOf } from '../setup/sources.ts';

await importEntities();

/** The names of PostgreSQL's types in `table.ts`. */
const TYPES: Record<number, string> = {
  16: 'boolean',
  17: 'bytea',
  20: 'bigint',
  23: 'int',
  25: 'text',
  114: 'jsonb',
  701: 'double precision',
  869: 'inet',
  1009: 'text[]',
  1184: 'timestamptz',
  3802: 'jsonb',
};

const client = new pg.Client({ connectionString: await newDatabaseUrl() });
await client.connect();
atEnd(() => client.end());

interface Connection {
  parse(query: { text: string; name: string; types: number[] }): void;
  describe(what: { type: 'S'; name: string }): void;
  sync(): void;
  once(event: string, listener: (message: never) => void): void;
  removeAllListeners(event: string): void;
}

/** Lets PostgreSQL parse a statement and describe its columns, without executing it. */
function describedBy(text: string): Promise<[name: string, type: string][]> {
  const described = new (class {
    columns: [string, string][] = [];
    resolve!: (columns: [string, string][]) => void;
    reject!: (error: Error) => void;
    submit(connection: Connection) {
      connection.parse({ text, name: '', types: [] });
      connection.describe({ type: 'S', name: '' });
      connection.sync();
      connection.once('parameterDescription', () => {});
    }
    handleRowDescription({ fields }: { fields: { name: string; dataTypeID: number }[] }) {
      this.columns = fields.map(({ name, dataTypeID }) => [name, TYPES[dataTypeID] ?? `type ${dataTypeID}`]);
    }
    handleError(error: Error) {
      this.reject(new Error(`${error.message} in ${text}`));
    }
    handleReadyForQuery() {
      this.resolve(this.columns);
    }
  })();
  return new Promise((resolve, reject) => {
    Object.assign(described, { resolve, reject });
    client.query(described as never);
  });
}

const typeOf = (column: Column<unknown>) => `${String(column.type)}${column.array ? '[]' : ''}`;
const declared = ({ columns }: Statement<unknown>) =>
  Object.entries(columns).map(([name, column]) => [snake(name), typeOf(column)]);
const sorted = (columns: unknown[][]) => columns.map((column) => column.join(' ')).sort();

/** SQL in the house's lower case. */
const SQL =
  /\b(select\s[\s\S]+\sfrom|insert\s+into|update\s+\w+\s+(as\s+\w+\s+)?set|delete\s+from|with\s+\w+\s+as\s*\(|for\s+update|order\s+by|where\s+\w+\s*(=|<|>|in\b|is\b))/;

describe('A statement of the entities', () => {
  it('has the columns that it declares when PostgreSQL prepares it', async () => {
    expect(STATEMENTS.length).toBeGreaterThan(0);
    for (const one of STATEMENTS) expect(sorted(await describedBy(one.text)), one.text).toEqual(sorted(declared(one)));
  });

  it('stands in no other folder', () => {
    const files = ['resolvers', 'provisioning', 'facades'].flatMap(sourcesIn);
    const wrong = files.flatMap((file) =>
      stringsOf(file).flatMap((text) => (SQL.test(text) ? [`${file}: ${text}`] : [])),
    );
    expect(wrong).toEqual([]);
    expect(sourcesIn('entities').some((file) => stringsOf(file).some((text) => SQL.test(text)))).toBe(true);
  });
});

it('A connection keeps a statement that runs often, and no other one', async () => {
  const [often, seldom] = ['often', 'seldom'].map((word) => statement({})`select '${word}'`) as [
    Statement<object>,
    Statement<object>,
  ];
  const db = await newDatabase(onTestFinished, { poolSize: 1 });
  const kept = async () => {
    const rows = await db.query<{ statement: string }>('select statement from pg_prepared_statements');
    return rows.map(({ statement: sql }) => sql);
  };
  for (let i = 0; i < 60; i++) await often.all(db);
  await seldom.all(db);
  expect(await kept()).not.toContain(often.text);
  await often.all(db);
  expect(await kept()).toContain(often.text);
  expect(await kept()).not.toContain(seldom.text);
});

it('A statement gives its rows in pages, and two of them at once', async () => {
  const numbers = statement({})`select n::int as number from generate_series(1, $1::int) n` as Statement<{
    number: number;
  }>;
  const db = await newDatabase(onTestFinished, { poolSize: 1 });
  const pages: number[][] = [];
  await db.transaction(async (tx) => {
    for await (const page of numbers.pages(tx, [4], 2)) {
      pages.push(page.map(({ number }) => number));
      for await (const inner of numbers.pages(tx, [1], 2)) pages.push(inner.map(({ number }) => -number));
    }
    expect(await tx.query('select from pg_cursors')).toEqual([]);
  });
  expect(pages).toEqual([[1, 2], [-1], [3, 4], [-1]]);
});

it('A migration that adds columns breaks no statement that an older process keeps', async () => {
  for (const [i, { text }] of STATEMENTS.entries()) await client.query(`prepare s${i} as ${text}`);
  const db = { query: async (sql: string) => (await client.query(sql)).rows } as unknown as Queryable;
  await asOwner(
    db,
    `do $$ declare one text; begin
      for one in select tablename from pg_tables where schemaname = 'public' loop
        execute format('alter table %I add column added_later int', one);
      end loop; end $$`,
  );
  const broken: string[] = [];
  for (const [i, { text }] of STATEMENTS.entries()) {
    const highest = Math.max(0, ...[...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number)));
    const values = highest ? `(${Array(highest).fill('null')})` : '';
    await client.query('begin');
    // PostgreSQL's code of a plan with other columns. Other errors are those of the empty values.
    await client.query(`execute s${i}${values}`).catch(({ code, message }) => {
      if (code === '0A000') broken.push(`${message}: ${text}`);
    });
    await client.query('rollback');
  }
  expect(broken).toEqual([]);
});
