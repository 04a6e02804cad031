/** Addresses: every one that can be given to a machine, the order that holds it, and the network that it is of. */

import { STOCK_LOW } from '../catalog.ts';
import { entity, inet, int, key, now, nullable, oneOf, type RowOf, text, timestamp } from '../database/table.ts';

export const IpAddress = entity(
  'address',
  {
    /** An IPv4 address, or an IPv6 prefix of which the machine gets the first address. */
    address: { ...inet(), primary: true },
    family: oneOf('IPV4', 'IPV6'),
    regionCode: text(),
    /** Of the network that it is in; null where hosts route it by itself. */
    prefixLength: nullable(int()),
    gateway: nullable(inet()),
    /** The order number that holds it; null: free, or resting until `freeAt`. */
    heldBy: nullable(text()),
    freeAt: nullable(timestamp()),
    /** The network of the operator that it is of; null for the addresses of simulated machines. */
    poolId: nullable(text()),
  },
  [
    { name: 'address_free', columns: ['regionCode', 'family', 'address'], where: 'held_by is null' },
    { name: 'address_held_by', columns: ['heldBy'], where: 'held_by is not null' },
    { name: 'address_pool_id', columns: ['poolId'], where: 'pool_id is not null' },
  ],
);
export type IpAddress = RowOf<typeof IpAddress>;

/** A network of the operator. Where a bastion has one of a family, its machines have addresses of such networks alone. */
export const AddressPool = entity('address_pool', {
  id: key(),
  regionCode: text(),
  family: oneOf('IPV4', 'IPV6'),
  /** The network, or the prefix that /64s are cut from; CIDR notation. */
  cidr: inet(),
  gateway: nullable(inet()),
  createdAt: now(),
});
export type AddressPool = RowOf<typeof AddressPool>;

/**
 * Which rows of `address` a machine could be given now, in a query that names region and family. What rests after it was
 * freed is not free, nor are the addresses of simulated machines where the operator has networks.
 */
export const freeAddressSql = (region: string, family: string): string => `
  address.region_code = ${region} and address.family = ${family} and address.held_by is null
    and (address.free_at is null or address.free_at <= now())
    and (address.pool_id is not null or not exists (
      select from address_pool pool where pool.region_code = ${region} and pool.family = ${family}))`;

/**
 * A CTE `room` with the column `free`: for how many more machines each bastion has an IPv4 address and an IPv6 prefix. It
 * counts once for each bastion, however many tiers are asked for, and no further than `most`: what is read at each request
 * has to know only which level of stock that is. It looks in the order of the index. `where` may leave out bastions.
 */
export const addressRoomSql = (most = String(STOCK_LOW), where = 'true'): string => `
  room as materialized (
    select bastion.code as region_code, least(${countSql("'IPV4'", most)}, ${countSql("'IPV6'", most)})::int as free
    from catalog_item bastion where bastion.kind = 'bastion' and ${where})`;

const countSql = (family: string, most: string) =>
  `(select count(*) from (select from address where ${freeAddressSql('bastion.code', family)} order by address limit ${most}) free)`;

export const ReverseDnsTold = entity('reverse_dns_told', {
  ip: { ...inet(), primary: true },
  ptr: text(),
});
export type ReverseDnsTold = RowOf<typeof ReverseDnsTold>;
