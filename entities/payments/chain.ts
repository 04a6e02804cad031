/** Chains: how far each was read, its last blocks, and the numbers of deposit addresses. */
import { entity, int, key, nullable, type RowOf, text, timestamp } from '../database/table.ts';
import type { Queryable } from '../database/transaction.ts';

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

export const ChainBlock = entity('chain_block', {
  network: { ...text(), primary: true },
  height: { ...int(), primary: true },
  hash: text(),
});
export type ChainBlock = RowOf<typeof ChainBlock>;

export const Deposit = entity('deposit', {
  /** What the addresses are derived from, such as the fingerprint of an extended public key. */
  source: key(),
  /** The next number. */
  next: int(),
});
export type Deposit = RowOf<typeof Deposit>;

/** A number of that source which nobody was given before. */
export async function nextDeposit(db: Queryable, source: string): Promise<number> {
  const [given] = await db.query<{ number: number }>(
    `insert into deposit (source, next) values ($1, 1) on conflict (source) do update set next = deposit.next + 1
      returning next - 1 as number`,
    [source],
  );
  return given!.number;
}
