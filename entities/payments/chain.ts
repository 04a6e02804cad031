/** How far each chain that is followed was read, and when that was all there was. */
import type { Queryable } from '../database/database.ts';
import { entity, int, key, nullable, type RowOf, timestamp } from '../database/table.ts';

export const Chain = entity('chain', {
  /** Such as base or bitcoin. */
  network: key(),
  /** The highest block that its node had when it was last asked. */
  head: int(),
  /** The last block that was read; the same chain may have lost it since. */
  height: nullable(int()),
  /** When all blocks that there were had been read last; within some seconds. */
  reachedAt: nullable(timestamp()),
});
export type Chain = RowOf<typeof Chain>;

/** A chain whose head was not reached for so long is behind: what comes now would be noticed late. */
export const BEHIND_SECONDS = 600;

/** Those of these chains that are behind, or were never read. */
export async function chainsBehind(db: Queryable, networks: readonly string[]): Promise<Set<string>> {
  if (!networks.length) return new Set();
  const rows = await db.query<{ network: string }>(
    `select given as network from unnest($1::text[]) as given left join chain on network = given
      where coalesce(reached_at, '-infinity') < now() - interval '${BEHIND_SECONDS} seconds'`,
    [networks],
  );
  return new Set(rows.map(({ network }) => network));
}
