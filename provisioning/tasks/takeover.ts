/** What a start does with the work of a process that died. */
import type { Queryable } from '../../entities/database/database.ts';

/**
 * Ends all leases, so that their tasks run again at once. Only for a caller who knows that no other worker lives. If one
 * does all the same, it loses its leases and writes nothing. The attempts stay counted: one of them may have been the death.
 * @returns how many tasks were leased
 */
export async function endLeases(db: Queryable): Promise<number> {
  const ended = await db.query(
    'update task set leased_by = null, run_at = now() where leased_by is not null returning id',
  );
  return ended.length;
}
