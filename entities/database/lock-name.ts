/** Locks of names, for work that no row stands for. */
import { statement } from './statement.ts';

/** Locks the name $1, such as that of a chain, until the end of the transaction. */
export const LOCK_NAME = statement({})`select from pg_advisory_xact_lock(hashtextextended($1, 0))`;
