/** The clock of the database. It decides about all times, because processes on other machines have other clocks. */
import * as column from './column.ts';
import { statement } from './statement.ts';
import type { Queryable } from './transaction.ts';

const READ_CLOCK = statement({ time: column.now() })`select now() as time`;

/** Returns the time of the database, which is the start of its transaction. */
export async function databaseTime(db: Queryable): Promise<Date> {
  const clock = await READ_CLOCK.first(db);
  return clock!.time;
}
