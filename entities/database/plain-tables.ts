/** Tables that are not plain any more. A superuser can so hide rows from a proof, and show others. */
import * as column from './column.ts';
import { statement } from './statement.ts';

/**
 * The names $1 of tables that do not lead to plain tables of the schema: to relations elsewhere, to views, or to tables that
 * have rules or row security, or inherit rows. In the order of the names.
 */
export const UNPLAIN_TABLES = statement({ table: column.text() })`
  select name as table from unnest($1::text[]) as name left join pg_class on pg_class.oid = to_regclass(name)
  where relkind is distinct from 'r' or relnamespace <> current_schema()::regnamespace
    or relrowsecurity or relhasrules or relhassubclass order by name`;
