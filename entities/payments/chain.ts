/** Chains: how far the worker has read each, its last blocks, and the numbers of deposit addresses. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { entity, nullable, type RowOf } from '../database/table.ts';
import type { Queryable } from '../database/transaction.ts';

export const Chain = entity('chain', {
  /** Such as base or bitcoin. */
  network: column.key(),
  /** The highest block of its node when the worker last asked. */
  head: column.int(),
  /** The last block that the worker has read. A reorganisation may have removed it since. */
  height: nullable(column.int()),
  /** When the worker last had read every block; within some seconds. */
  reachedAt: nullable(column.timestamp()),
});
export type Chain = RowOf<typeof Chain>;

/** A chain is behind if the worker has not reached its head for so long. It would notice payments late. */
export const BEHIND_SECONDS = 600;

const FIND_CHAINS_BEHIND = statement({ network: column.text() })`
  select given as network from unnest($1::text[]) as given left join chain on network = given
    where coalesce(reached_at, '-infinity') < now() - interval '${BEHIND_SECONDS} seconds'`;

/** Selects from these chains the ones that are behind, or were never read. */
export async function chainsBehind(db: Queryable, networks: readonly string[]): Promise<Set<string>> {
  if (!networks.length) return new Set();
  const rows = await FIND_CHAINS_BEHIND.all(db, [networks]);
  return new Set(rows.map(({ network }) => network));
}

/**
 * Keeps how far a chain was read. It seldom writes where nothing is new, because readers of `reached_at` count minutes.
 * $1 network, $2 head, $3 height, $4 whether the head was reached.
 */
export const KEEP_CHAIN = statement({})`
  insert into chain as kept (network, head, height, reached_at) values ($1, $2, $3, case when $4::boolean then now() end)
  on conflict (network) do update set head = excluded.head, height = excluded.height,
    reached_at = coalesce(excluded.reached_at, kept.reached_at)
  where kept.head <> excluded.head or kept.height is distinct from excluded.height
    or excluded.reached_at > coalesce(kept.reached_at, '-infinity') + interval '10 seconds'`;

export const ChainBlock = entity('chain_block', {
  network: { ...column.text(), primary: true },
  height: { ...column.int(), primary: true },
  hash: column.text(),
});
export type ChainBlock = RowOf<typeof ChainBlock>;

/** The highest block that the worker has read of the network $1. */
export const FIND_TIP = statement({ height: column.int(), hash: column.text() })`
  select height, hash from chain_block where network = $1 order by height desc limit 1`;

export const Deposit = entity('deposit', {
  /** The source of the addresses, such as the fingerprint of an extended public key. */
  source: column.key(),
  /** The next number. */
  next: column.int(),
});
export type Deposit = RowOf<typeof Deposit>;

const TAKE_DEPOSIT = statement({ number: column.int() })`
  insert into deposit (source, next) values ($1, 1) on conflict (source) do update set next = deposit.next + 1
    returning next - 1 as number`;

/** Takes an unused number of that source. */
export async function nextDeposit(db: Queryable, source: string): Promise<number> {
  const deposit = await TAKE_DEPOSIT.first(db, [source]);
  return deposit!.number;
}
