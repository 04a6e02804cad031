/** Chains: how far the worker has read each, its last blocks, and the code of its tokens. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { entity, nullable, type RowOf } from '../database/table.ts';
import type { Queryable } from '../database/transaction.ts';
import { DEPOSIT_GAP } from './deposit.ts';

export const Chain = entity('chain', {
  /** Such as base or bitcoin. */
  network: column.key(),
  /** The highest block of its node when the worker last asked. */
  head: column.int(),
  /** The last block that the worker has read. A reorganisation may have removed it since. */
  height: nullable(column.int()),
  /**
   * When the worker last had read every block and every announced payment; within some seconds. A node that has stopped does
   * not count.
   */
  reachedAt: nullable(column.timestamp()),
  /** The highest block that the chain had promised to keep. Payments up to it are final. */
  finalHeight: nullable(column.int()),
  /** The reason why the worker cannot read the chain or settle its payments; null: none. */
  problem: nullable(column.text()),
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
 * $1 network, $2 head, $3 height, $4 whether everything was read, $5 the final height or null.
 *
 * A chain that was behind may belong to a database that the operator has restored. The lost days gave out numbers of deposit
 * addresses, so the statement leaves out as many. The coins of the chain were unavailable until now.
 */
export const KEEP_CHAIN = statement({})`
  with leap as (
    update deposit set next = next + ${DEPOSIT_GAP} where $4::boolean and exists (
      select from chain where network = $1 and reached_at < now() - interval '${BEHIND_SECONDS} seconds'))
  insert into chain as kept (network, head, height, reached_at, final_height)
  values ($1, $2, $3, case when $4::boolean then now() end, $5)
  on conflict (network) do update set head = excluded.head, height = excluded.height,
    reached_at = coalesce(excluded.reached_at, kept.reached_at),
    final_height = greatest(excluded.final_height, kept.final_height)
  where kept.head <> excluded.head or kept.height is distinct from excluded.height
    or excluded.reached_at > coalesce(kept.reached_at, '-infinity') + interval '10 seconds'
    or excluded.final_height > coalesce(kept.final_height, -1)`;

/** Whether the time $1 is more than $2 seconds ago. */
export const IS_OLD = statement({ old: column.boolean() })`
  select $1::timestamptz < now() - make_interval(secs => $2::double precision) as old`;

/** Keeps the problem $2 of the network $1; null: none. Returns whether it had none before, if it changes. */
export const KEEP_PROBLEM = statement({ isNew: column.boolean() })`
  with known as (select problem from chain where network = $1)
  insert into chain as kept (network, head, problem) values ($1, 0, $2)
  on conflict (network) do update set problem = excluded.problem where kept.problem is distinct from excluded.problem
  returning problem is not null and (select problem from known) is null as is_new`;

export const ChainBlock = entity('chain_block', {
  network: { ...column.text(), primary: true },
  height: { ...column.int(), primary: true },
  hash: column.text(),
});
export type ChainBlock = RowOf<typeof ChainBlock>;

/** The highest block that the worker has read of the network $1. */
export const FIND_TIP = statement({
  height: column.int(),
  hash: column.text(),
  finalHeight: Chain.columns.finalHeight,
  problem: Chain.columns.problem,
})`
  select chain_block.height, hash, final_height, problem from chain_block left join chain using (network)
    where network = $1 order by chain_block.height desc limit 1`;

/** The code of the contract of a token, as the service first saw it. */
export const TokenCode = entity('token_code', {
  network: { ...column.text(), primary: true },
  /** In lower case. */
  contract: { ...column.text(), primary: true },
  /** SHA-256 of the code in hexadecimal digits. */
  codeHash: column.text(),
  notedAt: column.now(),
});
export type TokenCode = RowOf<typeof TokenCode>;

/** Notes the code hashes $3 of the contracts $2 of the network $1, if they are new. Returns the contracts with another code. */
export const NOTE_TOKEN_CODES = statement({ contract: column.text() })`
  with given as (select * from unnest($2::text[], $3::text[]) as given(contract, code_hash)),
    noted as (
      insert into token_code (network, contract, code_hash) select $1, contract, code_hash from given order by contract
      on conflict do nothing)
  select contract from given join token_code using (contract)
    where network = $1 and token_code.code_hash <> given.code_hash order by contract`;
