/** Tables that are not plain any more. A superuser can so hide rows from a proof, and show others. */
import * as column from './column.ts';
import { statement } from './statement.ts';

/**
 * Those of the names $1 that lead to no plain table of the schema. They lead elsewhere, or to a view. Or the table has rules
 * or row security, or inherits rows.
 */
export const UNPLAIN_TABLES = statement({ table: column.text() })`
  select name as table from unnest($1::text[]) as name left join pg_class on pg_class.oid = to_regclass(name)
  where relkind is distinct from 'r' or relnamespace <> current_schema()::regnamespace
    or relrowsecurity or relhasrules or relhassubclass order by name`;
