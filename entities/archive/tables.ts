/** The tables of an archive. An unlogged table is none of them: its rows do not survive a crash either. */
import type pg from 'pg';

export interface StoredTable {
  name: string;
  /** The columns that an insert may name. */
  columns: string[];
  /** The tables that must have their rows before. */
  needs: string[];
}

/** The `needs` of a table that refers to itself do not name it: PostgreSQL looks when the statement ends. */
const LIST_TABLES = `
  select relname as name,
      array(select attname::text from pg_attribute where attrelid = pg_class.oid and attnum > 0 and not attisdropped
        and attgenerated = '' order by attnum) as columns,
      array(select distinct needed.relname::text from pg_constraint join pg_class needed on needed.oid = confrelid
        where conrelid = pg_class.oid and contype = 'f' and confrelid <> conrelid) as needs
    from pg_class where relnamespace = current_schema()::regnamespace and relkind = 'r' and relpersistence = 'p'
      and relname <> all($1) order by relname`;

/** Lists the tables so that each one comes after those that its foreign keys name. @param except the names of other tables */
export async function listTables(client: pg.ClientBase, except: readonly string[]): Promise<StoredTable[]> {
  const { rows } = await client.query<StoredTable>(LIST_TABLES, [except]);
  const ordered: StoredTable[] = [];
  for (let left = rows; left.length; ) {
    const names = new Set(left.map(({ name }) => name));
    const free = left.filter(({ needs }) => !needs.some((name) => names.has(name)));
    if (!free.length) throw new Error(`The foreign keys of these tables form a circle: ${[...names].join(', ')}.`);
    ordered.push(...free);
    left = left.filter((table) => !free.includes(table));
  }
  return ordered;
}
