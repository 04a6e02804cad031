/** Statements by which the operator lists, adds and removes networks. */
import * as column from '../database/column.ts';
import { LOCK_NAME } from '../database/lock-name.ts';
import { statement } from '../database/statement.ts';
import { nullable, type Row } from '../database/table.ts';
import type { Transaction } from '../database/transaction.ts';
import { AddressPool } from './ip-address.ts';

const POOL = {
  ...AddressPool.columns,
  cidr: column.text(),
  gateway: nullable(column.text()),
  /** The number of its addresses, or of its /64s. */
  total: column.int(),
  held: column.int(),
  /** The number of addresses that were freed a moment ago, so that orders cannot claim them yet. */
  resting: column.int(),
};
export type AddressPoolView = Row<typeof POOL>;
/** The networks in the order of their ids. $1 region, $2 id; null for all. */
export const LIST_ADDRESS_POOLS = statement(POOL)`
  select pool.id, pool.region_code, pool.kind, pool.family, pool.routed, text(pool.cidr) as cidr, host(pool.gateway) as gateway,
    pool.created_at, count(address.address)::int as total, count(address.held_by)::int as held,
    (count(*) filter (where address.held_by is null and address.free_at > now()))::int as resting
  from address_pool pool left join address on address.pool_id = pool.id
  where ($1::text is null or pool.region_code = $1) and ($2::text is null or pool.id = $2)
  group by pool.id order by pool.id`;

/** Makes transactions that add networks wait for each other, because each compares its network with all others. */
export const lockAddressPools = (tx: Transaction): Promise<unknown> => LOCK_NAME.all(tx, ['address pools']);

/**
 * The reasons that forbid a network. Its bounds or its gateway are outside; it overlaps another network; or a simulated
 * machine has an address of it. $1 CIDR, $2 first address, $3 last address, $4 gateway, $5 whether it is IPv4.
 */
export const FIND_POOL_CONFLICTS = statement({
  outside: column.boolean(),
  overlaps: column.boolean(),
  taken: column.boolean(),
})`
  select not coalesce($2::inet <<= network($1::inet) and $3::inet <<= network($1::inet), true)
      or ($2::inet is not null and not $2::inet <<= network($1::inet))
      or ($3::inet is not null and not $3::inet <<= network($1::inet))
      or ($5::boolean and $4::inet is not null and not $4::inet <<= network($1::inet)) as outside,
    exists (select from address_pool where cidr && network($1::inet)) as overlaps,
    exists (select from address where address <<= network($1::inet) and pool_id is null and held_by is not null) as taken`;
/** $1 id, $2 region, $3 family, $4 CIDR, $5 gateway, $6 kind, $7 whether its /64s are routed. */
export const ADD_ADDRESS_POOL = statement({})`
  insert into address_pool (id, region_code, family, cidr, gateway, kind, routed)
  values ($1, $2, $3, network($4::inet), $5, $6, $7)`;

/** Adopts free addresses of simulated machines for the network. */
const ADOPT = `
  on conflict (address) do update set region_code = excluded.region_code, kind = excluded.kind, prefix_length = excluded.prefix_length,
    gateway = excluded.gateway, pool_id = excluded.pool_id returning address`;
/**
 * Adds the addresses of an IPv4 network. A point-to-point network (RFC 3021) and a single address have no network or
 * broadcast address. $1 id, $2 length of the prefix, $3 first address, $4 last address.
 */
export const ADD_IPV4_ADDRESSES = statement({ address: column.inet() })`
  insert into address (address, family, kind, region_code, prefix_length, gateway, pool_id)
  select one, 'IPV4', kind, region_code, case when gateway is not null then $2::int end, gateway, id
  from address_pool, lateral (
    select host(cidr)::inet + n as one from generate_series(0, (1 << (32 - $2::int)) - 1) n) each
  where id = $1 and one <> coalesce(gateway, '::') and ($2::int > 30 or (one <> host(cidr)::inet and one <> host(broadcast(cidr))::inet))
    and one >= coalesce($3::inet, host(cidr)::inet) and one <= coalesce($4::inet, host(broadcast(cidr))::inet) ${ADOPT}`;
/**
 * Adds the /64s of an IPv6 network, which the fourth group of digits numbers. It skips the /64 of the gateway.
 * $1 id, $2 length of the prefix.
 */
export const ADD_IPV6_ADDRESSES = statement({ address: column.inet() })`
  insert into address (address, family, kind, region_code, prefix_length, gateway, pool_id)
  select one, 'IPV6', kind, region_code, case when gateway is not null then 64 end, gateway, id
  from address_pool, lateral (
    select set_masklen(host(cidr)::inet | format('0:0:0:%s::', to_hex(n))::inet, 64) as one
    from generate_series(0, (1 << (64 - $2::int)) - 1) n) each
  where id = $1 and not coalesce(gateway << one, false) ${ADOPT}`;

/** Locks the addresses of a network in their order. $1 id. */
export const LOCK_POOL_ADDRESSES = statement({})`select from address where pool_id = $1 order by address for update`;
