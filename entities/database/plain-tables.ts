/**
 * Objects by which the owner of the database can hide rows from a proof, and show others. Some are tables that are not plain
 * any more. Others are functions and operators that stand in for those of PostgreSQL.
 */
import * as column from './column.ts';
import type { Database } from './database.ts';
import { statement } from './statement.ts';

const CURRENT_SCHEMA = statement({ schema: column.text() })`select current_schema()::text as schema`;
/**
 * Hides the functions and operators of the schema from the next statements of the transaction. PostgreSQL would otherwise
 * prefer one whose types fit exactly to its own.
 */
const HIDE_SCHEMA = statement({})`set local search_path = pg_catalog`;
/**
 * Those of the names $1 that lead to no plain table of the schema $2. They lead elsewhere, or to a view. Or the table has
 * rules or row security, or inherits rows.
 */
const FIND_UNPLAIN_TABLES = statement({ name: column.text() })`
  select name::text from unnest($1::text[]) as name left join pg_class on relname = name and relnamespace = $2::regnamespace
  where relkind is distinct from 'r' or relrowsecurity or relhasrules or relhassubclass
    or exists (select from pg_class where relname = name and relnamespace = 'pg_catalog'::regnamespace)
  order by name`;
/** The first object id that PostgreSQL gives to objects that it does not bring along (FirstNormalObjectId). */
const FIRST_OWN_OID = 16_384;
/**
 * Operators of the schema $1, and its functions with the name of one of PostgreSQL. A function of a row stands in for a
 * column. Also functions and operators that somebody added to those of PostgreSQL.
 */
const FIND_SUBSTITUTES = statement({ name: column.text() })`
  select 'the function ' || $1 || '.' || own.proname as name from pg_proc own
    where own.pronamespace = $1::regnamespace and (
      exists (select from pg_proc its where its.proname = own.proname and its.pronamespace = 'pg_catalog'::regnamespace)
      or exists (select from pg_type row_type where row_type.oid = any(own.proargtypes) and row_type.typtype in ('c', 'p')))
  union select 'the operator ' || $1 || '.' || oprname from pg_operator where oprnamespace = $1::regnamespace
  union select 'the function pg_catalog.' || proname from pg_proc
    where pronamespace = 'pg_catalog'::regnamespace and oid >= ${FIRST_OWN_OID}
  union select 'the operator pg_catalog.' || oprname from pg_operator
    where oprnamespace = 'pg_catalog'::regnamespace and oid >= ${FIRST_OWN_OID}
  order by name`;

/** The names of the objects by which one can alter what a proof reads. */
export interface Alterations {
  /** Of the given tables, those that are not plain. */
  tables: string[];
  /** Functions and operators that stand in for those of PostgreSQL. */
  substitutes: string[];
}

/** Looks for alterations of the schema of the service, and of its tables. */
export const findAlterations = (db: Database, tables: readonly string[]): Promise<Alterations> =>
  db.transaction(async (tx) => {
    const { schema } = (await CURRENT_SCHEMA.first(tx))!;
    await HIDE_SCHEMA.all(tx);
    return {
      tables: (await FIND_UNPLAIN_TABLES.all(tx, [tables, schema])).map(({ name }) => name),
      substitutes: (await FIND_SUBSTITUTES.all(tx, [schema])).map(({ name }) => name),
    };
  });
