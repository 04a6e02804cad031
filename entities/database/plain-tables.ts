/** Tables that are not plain any more. A superuser can so hide rows from a proof, and show others. */
import * as column from './column.ts';
import { statement } from './statement.ts';

/** The tables of the service that are views, have rules or row security, or inherit rows. In the order of their names. */
export const UNPLAIN_TABLES = statement({ table: column.text() })`
  select relname as table from pg_class
  where relnamespace = current_schema()::regnamespace and relkind in ('r', 'v', 'm', 'f', 'p')
    and (relkind <> 'r' or relrowsecurity or relhasrules or relhassubclass) order by relname`;
