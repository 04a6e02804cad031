/** PostgreSQL prepares every statement that entities declare, and its columns are those that TypeScript expects. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, describe, expect, it } from 'vitest';
import { STATEMENTS, type Statement } from '../../entities/database/statement.ts';
import { type Column, snake } from '../../entities/database/table.ts';
import { newDatabaseUrl } from '../setup/database.ts';

const ENTITIES = join(import.meta.dirname, '..', '..', 'entities');
for (const file of readdirSync(ENTITIES, { recursive: true, encoding: 'utf8' }))
  if (file.endsWith('.ts') && !file.includes('migrations')) await import(join(ENTITIES, file));

/** The names that PostgreSQL's types have in `table.ts`. */
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

const client = new pg.Client({ connectionString: await newDatabaseUrl(afterAll) });
await client.connect();
afterAll(() => client.end());

interface Connection {
  parse(query: { text: string; name: string; types: number[] }): void;
  describe(what: { type: 'S'; name: string }): void;
  sync(): void;
  once(event: string, listener: (message: never) => void): void;
  removeAllListeners(event: string): void;
}

/** Has PostgreSQL parse a statement and describe its columns; it executes nothing. */
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

describe('A statement of the entities', () => {
  it('is prepared by PostgreSQL, and has the columns that it declares', async () => {
    expect(STATEMENTS.length).toBeGreaterThan(0);
    for (const one of STATEMENTS) expect(sorted(await describedBy(one.text)), one.text).toEqual(sorted(declared(one)));
  });
});
