/** Addresses: every one that can be given to a machine, the order that holds it, and the network that it is of. */
import { entity, inet, int, key, now, nullable, oneOf, type RowOf, text, timestamp } from './entity.ts';

export const Address = entity(
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
export type Address = RowOf<typeof Address>;

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
