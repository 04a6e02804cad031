/** IP addresses: all that machines can have, the orders that hold them, and the operator's networks. */
import { STOCK_LOW } from '../catalog.ts';
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { entity, nullable, type RowOf } from '../database/table.ts';

export const IpAddress = entity('address', {
  /** An IPv4 address, or an IPv6 prefix; the machine gets the first address of the prefix. */
  address: { ...column.inet(), primary: true },
  family: column.oneOf('IPV4', 'IPV6'),
  regionCode: column.text(),
  /** The prefix length of its network; null where hosts route the address by itself. */
  prefixLength: nullable(column.int()),
  gateway: nullable(column.inet()),
  /** The order that holds it; null: free, or resting until `freeAt`. */
  heldBy: nullable(column.text()),
  freeAt: nullable(column.timestamp()),
  /** The operator's network that it belongs to; null for addresses of simulated machines. */
  poolId: nullable(column.text()),
});
export type IpAddress = RowOf<typeof IpAddress>;

/** A network of the operator. If a bastion has networks of a family, its machines get addresses of that family from them only. */
export const AddressPool = entity('address_pool', {
  id: column.key(),
  regionCode: column.text(),
  family: column.oneOf('IPV4', 'IPV6'),
  /** The network, or the prefix that contains the /64s of machines; CIDR notation. */
  cidr: column.inet(),
  gateway: nullable(column.inet()),
  createdAt: column.now(),
});
export type AddressPool = RowOf<typeof AddressPool>;

/**
 * The condition for rows of `address` that a machine can get now, for expressions of region and family. Resting addresses
 * are not free. Addresses of simulated machines are not free where the operator has networks.
 */
export const freeAddressSql = (region: string, family: string): string => `
  address.region_code = ${region} and address.family = ${family} and address.held_by is null
    and (address.free_at is null or address.free_at <= now())
    and (address.pool_id is not null or not exists (
      select from address_pool pool where pool.region_code = ${region} and pool.family = ${family}))`;

/**
 * A CTE `room` for each bastion. Its column `free` is the number of machines that can get an IPv4 address and an IPv6 prefix
 * there. It counts once, in the order of the index, and up to `most`: requests only need the level of stock.
 * @param where selects bastions
 */
export const addressRoomSql = (most = String(STOCK_LOW), where = 'true'): string => `
  room as materialized (
    select bastion.code as region_code, least(${countSql("'IPV4'", most)}, ${countSql("'IPV6'", most)})::int as free
    from catalog_item bastion where bastion.kind = 'bastion' and ${where})`;

const countSql = (family: string, most: string) =>
  `(select count(*) from (select from address where ${freeAddressSql('bastion.code', family)} order by address limit ${most}) free)`;

/** Picks the first free address of a family at a bastion, and locks it. */
export const pickAddressSql = (region: string, family: 'IPV4' | 'IPV6', wait: '' | 'skip locked'): string => `
  select address from address where ${freeAddressSql(region, `'${family}'`)} order by address limit 1 for update ${wait}`;

const lockFreeAddress = (family: 'IPV4' | 'IPV6') =>
  statement({ address: column.inet() })`${pickAddressSql('$1', family, '')}`;
/** For each family, locks the first free address, and waits for other claims of it. $1 region. */
export const LOCK_FREE_ADDRESS = { IPV4: lockFreeAddress('IPV4'), IPV6: lockFreeAddress('IPV6') };

/** Frees the addresses of an order. $1 order number, $2 the seconds that they rest. */
export const RELEASE_ADDRESSES = statement({})`
  with held as (select address from address where held_by = $1 order by address for update)
  update address set held_by = null, free_at = now() + $2 * interval '1 second' from held
  where address.address = held.address`;

/** The networks of the addresses of an order. $1 order number. */
export const FIND_NETWORKS = statement({
  family: IpAddress.columns.family,
  prefixLength: nullable(column.int()),
  gateway: nullable(column.text()),
})`
  select family, prefix_length, host(gateway) as gateway from address where held_by = $1`;

/** Shares the networks reserved for documentation (RFC 5737, RFC 3849) out among the bastions, for simulated machines. */
export const SEED_DOCUMENTATION_ADDRESSES = statement({})`
  with bastion as (
      select code, row_number() over (order by position) - 1 as n, count(*) over () as bastions
      from catalog_item where kind = 'bastion'),
    ipv4 as (
      select net::inet + host as address, 'IPV4' as family, (row_number() over (order by net::inet, host)) as n
      from unnest(array['192.0.2.0', '198.51.100.0', '203.0.113.0']) net cross join generate_series(1, 254) host),
    ipv6 as (
      select format('2001:db8:%s::/64', to_hex(n))::inet as address, 'IPV6' as family, n from generate_series(1, 1024) n)
  insert into address (address, family, region_code)
  select pool.address, pool.family, bastion.code
  from (select * from ipv4 union all select * from ipv6) pool join bastion on bastion.n = pool.n % bastion.bastions
  on conflict do nothing`;
