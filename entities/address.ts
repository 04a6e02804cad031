/** Addresses: every one that can be given to a machine, and the order that holds it. */
import { entity, inet, int, nullable, oneOf, type RowOf, text, timestamp } from './entity.ts';

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
  },
  [
    { name: 'address_free', columns: ['regionCode', 'family', 'address'], where: 'held_by is null' },
    { name: 'address_held_by', columns: ['heldBy'], where: 'held_by is not null' },
  ],
);
export type Address = RowOf<typeof Address>;
