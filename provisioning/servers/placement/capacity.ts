/**
 * Capacity: a place, room on a host, and addresses. An order claims all of it in its own transaction, and all of it is freed
 * when its machine is confirmed absent. Both take the rows in the same order: place, host, placement, address.
 */
import type { Transaction } from '../../../entities/database/transaction.ts';
import { freeAddresses, pickAddressSql } from './addresses.ts';
import {
  type ClaimSql,
  freeHosts,
  holdHostSql,
  lockHosts,
  type Machine,
  needsHostSql,
  pickHostSql,
} from './allocate.ts';
import { freePlaces, pickPlaceSql } from './places.ts';

/** What an order has claimed, as the columns of its server. */
export interface Room {
  /** Null where the region has no hosts of that kind and the engine needs none. */
  host: string | null;
  ipv4: string;
  ipv6: string;
  ipv6Prefix: string;
}

/**
 * CTEs that claim a place, room on a host, and addresses. `room` has one row with the columns host, ipv4, ipv6 and
 * ipv6_prefix; or none, and then nothing is claimed. Rows that others are claiming are skipped, so it never waits.
 */
export const claimSql = (claim: ClaimSql): string => `
  free_place as (${pickPlaceSql(claim.region, claim.serviceCode, 'skip locked')}),
  free_host as (${pickHostSql(claim, 'skip locked')}),
  free_ipv4 as (${pickAddressSql(claim.region, 'IPV4', 'skip locked')}),
  free_ipv6 as (${pickAddressSql(claim.region, 'IPV6', 'skip locked')}),
  room as (
    select free_place.number, free_host.*, free_ipv4.address as ipv4, host(free_ipv6.address + 1)::inet as ipv6,
      text(free_ipv6.address) as ipv6_prefix
    from free_place cross join free_ipv4 cross join free_ipv6 left join free_host on true
    where free_host.host is not null or not ${needsHostSql(claim)}),
  place_held as (
    update place set order_number = ${claim.orderNumber} from room
    where place.region_code = ${claim.region} and place.service_code = ${claim.serviceCode} and place.number = room.number),
  ${holdHostSql(claim, 'room')},
  addresses_held as (
    update address set held_by = ${claim.orderNumber}, free_at = null
    from (select ipv4 as address from room union all select ipv6_prefix::inet from room) given
    where address.address = given.address)`;

/** Claims room for a machine that was ordered before, and waits for others that are claiming the last of something. */
export async function reserveCapacity(tx: Transaction, machine: Machine): Promise<Room | undefined> {
  const { orderNumber, generation, region, serviceCode } = machine;
  if (!(await waitForRoom(tx, machine))) return undefined;
  const [room] = await tx.query<Room>(CLAIM, [region, serviceCode, orderNumber, generation]);
  return room;
}
const CLAIM = `
  with ${claimSql({ region: '$1', serviceCode: '$2', orderNumber: '$3', generation: '$4' })}
  select host, ipv4, ipv6, ipv6_prefix from room`;

/**
 * Waits for others that are claiming the last of something, for they may not come to their end. It takes the locks in their
 * order, and so does not follow a claim that found nothing in the same transaction: that has locked what it found.
 * @returns whether there may be room then
 */
export async function waitForRoom(tx: Transaction, machine: Machine): Promise<boolean> {
  const { region, serviceCode } = machine;
  const [place] = await tx.query(pickPlaceSql('$1', '$2', ''), [region, serviceCode]);
  if (!place) return false;
  await lockHosts(tx, machine);
  for (const family of ['IPV4', 'IPV6'] as const) {
    const [address] = await tx.query(pickAddressSql('$1', family, ''), [region]);
    if (!address) return false;
  }
  return true;
}

/** Gives back what a server holds, with what a resize has claimed. Only for machines that are confirmed absent. */
export async function releaseCapacity(tx: Transaction, orderNumber: string): Promise<void> {
  const [server] = await tx.query<{ ran: boolean }>(
    `update server set ipv4 = null, ipv6 = null, ipv6_prefix = null, reverse_dns = '[]', change = null, host = null
      where order_number = $1 returning paid_until is not null as ran`,
    [orderNumber],
  );
  await freePlaces(tx, orderNumber);
  await freeHosts(tx, orderNumber);
  await freeAddresses(tx, orderNumber, { ran: server?.ran ?? true });
}
