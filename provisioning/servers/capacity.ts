/**
 * Capacity: a place, room on a host, and addresses. An order claims all of it in its own transaction, and all of it is freed
 * when its machine is confirmed absent. Both take the rows in the same order: place, host, placement, address.
 */
import type { Transaction } from '../../entities/database.ts';
import { freeAddresses, pickAddressSql } from './addresses.ts';
import { freeHosts, holdHostSql, lockHosts, type Machine, NEEDS_HOST_SQL, pickHostSql } from './allocate.ts';
import { freePlaceSql, freePlaces } from './places.ts';

/** What an order has claimed, as the columns of its server. */
export interface Room {
  /** Null where the region has no hosts of that kind and the engine needs none. */
  host: string | null;
  ipv4: string;
  ipv6: string;
  ipv6Prefix: string;
}

/**
 * Claims a place, room on a host, and addresses: all of it or nothing. It skips rows that others are claiming. They may not
 * come to their end, so who finds nothing tries once more with `patient`, which waits for them first.
 *
 * A try that found nothing keeps what it has locked. The next one therefore begins in a new transaction or savepoint.
 */
export async function occupy(
  tx: Transaction,
  machine: Machine,
  { patient }: { patient: boolean },
): Promise<Room | undefined> {
  const { orderNumber, generation, region, serviceCode } = machine;
  if (patient && !(await waitForRoom(tx, machine))) return undefined;
  return (await tx.query<Room>(CLAIM, [region, serviceCode, orderNumber, generation], 'claim'))[0];
}

export const CLAIM = `
  with free_place as (${freePlaceSql('skip locked')}),
    free_host as (${pickHostSql('skip locked')}),
    free_ipv4 as (${pickAddressSql('IPV4', 'skip locked')}),
    free_ipv6 as (${pickAddressSql('IPV6', 'skip locked')}),
    room as (
      select free_place.number, free_host.*, free_ipv4.address as ipv4, free_ipv6.address as ipv6_prefix
      from free_place cross join free_ipv4 cross join free_ipv6 left join free_host on true
      where free_host.host is not null or not ${NEEDS_HOST_SQL}),
    place_held as (
      update place set order_number = $3 from room
      where place.region_code = $1 and place.service_code = $2 and place.number = room.number),
    ${holdHostSql('room')},
    addresses_held as (
      update address set held_by = $3, free_at = null
      from (select ipv4 as address from room union all select ipv6_prefix from room) given
      where address.address = given.address)
  select host, host(ipv4) as ipv4, host(ipv6_prefix + 1) as ipv6, text(ipv6_prefix) as "ipv6Prefix" from room`;

/** Waits until nobody is claiming the last of anything. @returns whether there may be room then */
async function waitForRoom(tx: Transaction, machine: Machine): Promise<boolean> {
  const { region, serviceCode } = machine;
  const [place] = await tx.query(freePlaceSql(''), [region, serviceCode]);
  if (!place) return false;
  await lockHosts(tx, machine);
  for (const family of ['IPV4', 'IPV6'] as const) {
    const [address] = await tx.query(pickAddressSql(family, ''), [region]);
    if (!address) return false;
  }
  return true;
}

/** Gives back what a server holds, with what a resize has claimed. Only for machines that are confirmed absent. */
export async function vacate(tx: Transaction, orderNumber: string): Promise<void> {
  await tx.query(
    `update server set ipv4 = null, ipv6 = null, ipv6_prefix = null, reverse_dns = '[]', change = null, host = null
      where order_number = $1`,
    [orderNumber],
  );
  await freePlaces(tx, orderNumber);
  await freeHosts(tx, orderNumber);
  await freeAddresses(tx, orderNumber);
}
