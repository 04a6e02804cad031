/**
 * Capacity: a place, room on a host, and addresses. An order claims all of it in its own transaction. All of it is released
 * when its machine is confirmed absent. Both take the rows in the same order: place, host, placement, address.
 */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { nullable, type Row } from '../database/table.ts';
import { kindsSql, pickAddressSql } from './ip-address.ts';
import { pickPlaceSql } from './place.ts';
import { type ClaimSql, GIVEN, holdHostSql, needsHostSql, pickHostSql } from './placement.ts';

/**
 * CTEs that claim a place, room on a host, and addresses. The relation `room` has one row with host, engine, ipv4,
 * ipv6 and ipv6_prefix, or none if nothing was claimed. They skip rows that other orders are claiming, so they never wait.
 */
export const claimSql = (claim: ClaimSql): string => `
  free_place as (${pickPlaceSql(claim.region, claim.serviceCode, 'skip locked')}),
  free_host as (${pickHostSql(claim, 'skip locked')}),
  ${kindsSql(claim.region, claim.serviceCode)},
  free_ipv4 as (${pickAddressSql(claim.region, 'IPV4', 'skip locked')}),
  free_ipv6 as (${pickAddressSql(claim.region, 'IPV6', 'skip locked')}),
  room as (
    select free_place.number, free_host.*, free_ipv4.address as ipv4, host(free_ipv6.address + 1)::inet as ipv6,
      case when free_ipv6.routed then text(free_ipv6.address) end as ipv6_prefix, free_ipv6.address as ipv6_network
    from free_place cross join free_ipv4 cross join kinds
      left join free_ipv6 on true left join free_host on true
    where (free_ipv6.address is not null or not kinds.needs_ipv6) and (free_host.host is not null or not ${needsHostSql(claim)})),
  place_held as (
    update place set order_number = ${claim.orderNumber} from room
    where place.region_code = ${claim.region} and place.service_code = ${claim.serviceCode} and place.number = room.number),
  ${holdHostSql(claim, 'room')},
  addresses_held as (
    update address set held_by = ${claim.orderNumber}, free_at = null
    from (select ipv4 as address from room union all select ipv6_network from room) given
    where address.address = given.address
    returning address.address),
  address_uses as (
    insert into address_use (order_number, address) select ${claim.orderNumber}, address from addresses_held)`;

/** The columns of a server that its claim fills. */
const ROOM = {
  /** Null where the region has no hosts of that kind and the engine needs none. */
  host: nullable(column.text()),
  /** Null: the environment configures the engine. */
  engine: nullable(column.text()),
  ipv4: column.inet(),
  /** Null where the operator has no network of IPv6 for that kind. */
  ipv6: nullable(column.inet()),
  /** Null where the /64 is not routed to the machine. */
  ipv6Prefix: nullable(column.text()),
};
/** Claims capacity for a server; no row without any. $1 region, $2 service code, $3 order number, $4 generation. */
export const CLAIM_CAPACITY = statement(ROOM)`
  with ${claimSql(GIVEN)}
  select host, engine, ipv4, ipv6, ipv6_prefix from room`;
/** A claim, as the columns of its server. */
export type Room = Row<typeof ROOM>;

/** Clears what a server has claimed, and says whether it ever ran. $1 order number. */
export const CLEAR_CAPACITY = statement({ ran: column.boolean() })`
  update server set ipv4 = null, ipv6 = null, ipv6_prefix = null, reverse_dns = '[]', change = null, host = null
  where order_number = $1 returning paid_until is not null as ran`;
