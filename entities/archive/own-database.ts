/**
 * The identifier of the database, by which a copy tells itself apart. A copy may lack what happened since, and another service may
 * use the original. So no service starts with a copy until the operator tells what it is.
 */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { defaulting, entity, type RowOf } from '../database/table.ts';
import type { Queryable } from '../database/transaction.ts';

export const OwnDatabase = entity('own_database', {
  isOnly: { ...defaulting(column.boolean(), 'true'), primary: true },
  /** The identifier of the cluster and the number of the database in it. */
  databaseId: column.text(),
});
export type OwnDatabase = RowOf<typeof OwnDatabase>;

const DATABASE_ID = `(
  select concat_ws('/', (select system_identifier from pg_control_system()), oid)
  from pg_database where datname = current_database())`;

/** Writes the identifier down, if none is known yet. `own`: whether it is the known one. */
const KNOW_DATABASE = statement({ own: column.boolean() })`
  with added as (
    insert into own_database as known (database_id) values (${DATABASE_ID})
    on conflict (is_only) do update set database_id = known.database_id returning database_id)
  select database_id = ${DATABASE_ID} as own from added`;

/** @throws Error with a sentence for the operator if the database is a copy */
export async function requireOwnDatabase(db: Queryable): Promise<void> {
  const { own } = (await KNOW_DATABASE.first(db))!;
  if (own) return;
  throw new Error(
    'The database is a copy of another one. If it lacks what happened since the copy, run `npm run restored`. If nothing ' +
      'happened since, and no other service uses the first one, run `npm run restored -- --moved`.',
  );
}

/** Accepts the copy as the database of the service. */
export const ADOPT_DATABASE = statement({})`
  insert into own_database (database_id) values (${DATABASE_ID})
  on conflict (is_only) do update set database_id = excluded.database_id`;
