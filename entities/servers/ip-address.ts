/** IP addresses: all that machines can have, the orders that hold them, and the operator's networks. */
import { STOCK_LOW } from '../catalog.ts';
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { defaulting, entity, nullable, type Row, type RowOf } from '../database/table.ts';
import { isSimulatedSql, kindOfTierSql } from './engine.ts';

export const IpAddress = entity('address', {
  /** An IPv4 address, or an IPv6 prefix; the machine gets the first address of the prefix. */
  address: { ...column.inet(), primary: true },
  family: column.oneOf('IPV4', 'IPV6'),
  /** The kind of servers that can get it. Machines of the simulated driver alone get SIMULATED ones. */
  kind: column.oneOf('VPS', 'DEDICATED', 'SIMULATED'),
  regionCode: column.text(),
  /** The prefix length of its network; null where hosts route the address by itself. */
  prefixLength: nullable(column.int()),
  gateway: nullable(column.inet()),
  /** The order that holds it; null: free, or resting until `freeAt`. */
  heldBy: nullable(column.text()),
  freeAt: nullable(column.timestamp()),
  /** The account whose machine had it last. */
  restsFor: nullable(column.text()),
  /** The operator's network that it belongs to; null for addresses of simulated machines. */
  poolId: nullable(column.text()),
});
export type IpAddress = RowOf<typeof IpAddress>;

/** The time in which an order had an address. A use that ended long ago is deleted. */
export const AddressUse = entity('address_use', {
  orderNumber: column.key(),
  /** As in the table of addresses: an IPv4 address, or a /64. */
  address: { ...column.inet(), primary: true },
  heldFrom: { ...column.now(), primary: true },
  /** When the address became free, since its machine was gone. Null: the order has it. */
  heldUntil: nullable(column.timestamp()),
});

/** Days until a worker deletes an ended use of an address. */
export const ADDRESS_USE_DAYS = 365;

/** A network of the operator, for one kind of server. */
export const AddressPool = entity('address_pool', {
  id: column.key(),
  regionCode: column.text(),
  kind: column.oneOf('VPS', 'DEDICATED'),
  family: column.oneOf('IPV4', 'IPV6'),
  /** The network, or the prefix that contains the /64s of machines; CIDR notation. */
  cidr: column.inet(),
  gateway: nullable(column.inet()),
  /** IPv6: whether each /64 is routed to its machine. Otherwise customers see only the address. */
  routed: defaulting(column.boolean(), 'false'),
  createdAt: column.now(),
});
export type AddressPool = RowOf<typeof AddressPool>;

type Family = 'IPV4' | 'IPV6';

const hasPoolSql = (region: string, family: Family, kind: string): string => `exists (
  select from address_pool pool where pool.region_code = ${region} and pool.family = '${family}' and pool.kind = ${kind})`;

/**
 * The kind of the addresses that servers of a kind get. Real machines never get simulated addresses, and simulated ones only
 * where the operator has no network for them.
 */
const addressKindSql = (region: string, family: Family, kind: string): string => `
  case when ${hasPoolSql(region, family, kind)} or not ${isSimulatedSql(kind)} then ${kind} else 'SIMULATED' end`;

/**
 * A select with the kinds of both addresses of a server. `needs_ipv6` is false where the operator has networks of IPv4 only:
 * such servers have no IPv6.
 */
const addressKindsSql = (region: string, kind: string): string => `
  select ${addressKindSql(region, 'IPV4', kind)} as ipv4, ${addressKindSql(region, 'IPV6', kind)} as ipv6,
    ${isSimulatedSql(kind)} or ${hasPoolSql(region, 'IPV6', kind)} as needs_ipv6`;

/** The condition for rows of `address` that a machine can get now. Resting addresses are not free. */
const freeAddressSql = (region: string, family: Family, kind: string): string => `
  address.region_code = ${region} and address.family = '${family}' and address.kind = ${kind} and address.held_by is null
    and (address.free_at is null or address.free_at <= now())`;
/** The longest-rested address comes first. */
const BY_REST = 'address.free_at nulls first, address.address';

/**
 * A CTE `room` for each bastion and kind of server. Its column `free` is the number of machines that can get their addresses
 * there. It counts once, in the order of the index, and up to `most`: requests only need the level of stock.
 * @param where selects bastions and the kinds of servers, as `bastion` and `server`
 */
export const addressRoomSql = ({ most = String(STOCK_LOW), where = 'true' } = {}): string => `
  room as materialized (
    select bastion.code as region_code, server.kind, case when needs_ipv6
      then least(${countSql('IPV4', most)}, ${countSql('IPV6', most)}) else ${countSql('IPV4', most)} end::int as free
    from catalog_item bastion cross join (values ('VPS'), ('DEDICATED')) server (kind)
      cross join lateral (${addressKindsSql('bastion.code', 'server.kind')}) kinds
    where bastion.kind = 'bastion' and ${where})`;
/** Joins the room of the tier `tier` in the region of `stock`. */
export const JOIN_ROOM_SQL = `left join room on room.region_code = stock.region_code and room.kind = ${kindOfTierSql('tier')}`;

const countSql = (family: Family, most: string) => `(
  select count(*) from (
    select from address where ${freeAddressSql('bastion.code', family, `kinds.${family.toLowerCase()}`)}
    order by ${BY_REST} limit ${most}) free)`;

/** A CTE `kinds` with the kinds of both addresses of a server, for `pickAddressSql`. */
export const kindsSql = (region: string, serviceCode: string): string => `
  server_kind as materialized (
    select ${kindOfTierSql('tier')} as kind from catalog_item tier where tier.code = ${serviceCode}),
  kinds as materialized (${addressKindsSql(region, '(select kind from server_kind)')})`;

/** Picks the longest-rested free address of a family at a bastion, and locks it. `routed`: see the network. */
export const pickAddressSql = (region: string, family: Family, wait: '' | 'skip locked'): string => `
  select address, coalesce((select routed from address_pool where id = pool_id), true) as routed
  from address where ${freeAddressSql(region, family, `(select ${family.toLowerCase()} from kinds)`)}
  order by ${BY_REST} limit 1 for update ${wait}`;

const lockFreeAddress = (family: Family) =>
  statement({ found: column.boolean() })`
    with ${kindsSql('$1', '$2')}, picked as (${pickAddressSql('$1', family, '')})
    select exists (select from picked) or (${String(family === 'IPV6')} and not (select needs_ipv6 from kinds)) as found`;
/**
 * For each family, locks the first free address, and waits for other claims of it. `found` is also true where the server
 * needs none. $1 region, $2 service code.
 */
export const LOCK_FREE_ADDRESS = { IPV4: lockFreeAddress('IPV4'), IPV6: lockFreeAddress('IPV6') };

/** Frees the addresses of an order, and ends their use. $1 order number, $2 the seconds that they rest. */
export const RELEASE_ADDRESSES = statement({ restsFor: nullable(column.text()) })`
  with held as (select address from address where held_by = $1 order by address for update),
    used as (
      select address, held_from from address_use
      where order_number = $1 and held_until is null order by address for update),
    ended as (
      update address_use set held_until = now() from used
      where order_number = $1 and address_use.address = used.address and address_use.held_from = used.held_from)
  update address set held_by = null, free_at = now() + $2 * interval '1 second',
    rests_for = (select account_id from server where order_number = $1)
  from held where address.address = held.address returning rests_for`;
/** Ends the rest of the addresses of the account $1 beyond the $2 that rest last, in each family. */
export const END_RESTS = statement({})`
  with beyond as (
    select address from (values ('IPV4'), ('IPV6')) families (name) cross join lateral (
      select address from address
      where rests_for = $1 and held_by is null and free_at > now() and family = families.name
      order by free_at desc offset $2::int for update skip locked) resting
  )
  update address set free_at = now() from beyond where address.address = beyond.address`;

/** Lets the free addresses rest that machines without a server have. $1 the addresses of such machines, $2 the seconds. */
export const REST_ADDRESSES = statement({})`
  with used as (
    select address from address
    where held_by is null and address in (
      select case family(ip) when 4 then ip else network(set_masklen(ip, 64))::inet end from unnest($1::inet[]) as given (ip))
    order by address for update)
  update address set free_at = greatest(free_at, now() + $2 * interval '1 second') from used where address.address = used.address`;

/** Selects the uses of an address at a time, as `used`. A machine has all addresses of its /64. */
export const usedAtSql = (address: string, at: string): string => `
  used.address = case family(${address}::inet) when 4 then ${address}::inet
      else network(set_masklen(${address}::inet, 64))::inet end
    and used.held_from <= ${at} and (used.held_until is null or used.held_until > ${at})`;

const USE = { ...AddressUse.columns, address: column.text(), accountId: column.text() };
export type AddressUseView = Row<typeof USE>;
/** The newest $3 uses of the address $1, with their accounts: all, or those at the time $2. */
export const LIST_ADDRESS_USES = statement(USE)`
  select order_number, text(address) as address, held_from, held_until, account_id
  from address_use used join server using (order_number)
  where ${usedAtSql('$1', 'coalesce($2::timestamptz, held_from)')}
  order by held_from desc limit $3::int`;

/** Deletes uses that ended more than `ADDRESS_USE_DAYS` ago, at most $1. */
export const DELETE_OLD_ADDRESS_USES = statement({ orderNumber: column.text() })`
  with old as (
    select order_number, address, held_from from address_use
    where held_until < now() - ${ADDRESS_USE_DAYS} * interval '1 day'
    order by address limit $1::int for update skip locked)
  delete from address_use using old
  where address_use.order_number = old.order_number and address_use.address = old.address
    and address_use.held_from = old.held_from
  returning address_use.order_number`;

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
  insert into address (address, family, kind, region_code)
  select pool.address, pool.family, 'SIMULATED', bastion.code
  from (select * from ipv4 union all select * from ipv6) pool join bastion on bastion.n = pool.n % bastion.bastions
  on conflict do nothing`;
