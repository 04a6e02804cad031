/**
 * The names under which PostgreSQL keeps statements: each connection parses and plans them once. To plan a read of one server
 * costs more than to execute it.
 */

/** The names by the SQL. A name means the same statement in each connection of the process. */
const NAMES = new Map<string, string>();

/** Lets each connection keep the statement from its first execution on. */
export function keepPrepared(sql: string): void {
  if (!NAMES.has(sql)) NAMES.set(sql, `s${NAMES.size}`);
}

/** Returns the name of a kept statement. TypeORM's have none: partial indexes serve them only with the values. */
export const preparedName = (sql: string): string | undefined => NAMES.get(sql);
