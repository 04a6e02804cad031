/** The operator's networks, which machines get their addresses from. */
import type { AddressPoolView } from '../../entities/servers/address-pool.ts';
import type { AddressUseView } from '../../entities/servers/ip-address.ts';
import {
  addAddressPool,
  listAddressPools,
  listAddressUses,
  removeAddressPool,
} from '../../resolvers/servers/address-pools.ts';
import { builder, inputType, objectType } from '../builder.ts';
import { ServerKind } from './servers.ts';

const AddressPoolType = objectType<AddressPoolView>(
  'AddressPool',
  'A network. The counts are of addresses, or of the /64s of an IPv6 prefix.',
  (t) => ({
    id: t.exposeID('id'),
    region: t.exposeString('regionCode'),
    kind: t.expose('kind', { type: ServerKind }),
    cidr: t.exposeString('cidr'),
    gateway: t.exposeString('gateway', { nullable: true, description: 'Null: hosts route the addresses.' }),
    routed: t.exposeBoolean('routed', {
      description: 'IPv6: whether each /64 is routed to its machine. Otherwise customers see only the address.',
    }),
    total: t.exposeInt('total'),
    held: t.exposeInt('held', { description: 'The number that machines have.' }),
    resting: t.exposeInt('resting', {
      description: 'The number that rest after their release; orders cannot claim them yet.',
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
  }),
);
const AddressUseType = objectType<AddressUseView>('AddressUse', 'The time in which a server had an address.', (t) => ({
  address: t.exposeString('address', { description: 'The IPv4 address, or the /64.' }),
  orderNumber: t.exposeString('orderNumber'),
  accountId: t.exposeID('accountId'),
  from: t.expose('heldFrom', { type: 'DateTime' }),
  until: t.expose('heldUntil', {
    type: 'DateTime',
    nullable: true,
    description: 'When the address became free. Null: the server has it.',
  }),
}));
const AddAddressPoolInput = inputType('AddAddressPoolInput', (t) => ({
  region: t.field({ type: 'Code', required: true, description: 'The code of a bastion.' }),
  cidr: t.field({
    type: 'Cidr',
    required: true,
    description: 'IPv4: /16 to /32. IPv6: /48 to /64; each machine gets a /64.',
  }),
  gateway: t.field({ type: 'IpAddress', description: 'Default: none; hosts route the addresses.' }),
  kind: t.field({ type: ServerKind, description: 'The servers that get its addresses. Default: VPS.' }),
  routed: t.boolean({
    description: 'IPv6: you route each /64 to its machine. Default: false, and customers see only the address.',
  }),
  first: t.field({
    type: 'IpAddress',
    description: 'The first address for machines (IPv4). Default: the first of the network.',
  }),
  last: t.field({
    type: 'IpAddress',
    description: 'The last address for machines (IPv4). Default: the last of the network.',
  }),
}));

builder.queryFields((t) => ({
  addressPools: t.field({
    type: [AddressPoolType],
    scope: 'operator',
    description: 'The networks.',
    args: { region: t.arg({ type: 'Code', description: 'Only networks of this bastion.' }) },
    resolve: (_, { region }, context) => listAddressPools(context, region),
  }),
  addressUses: t.field({
    type: [AddressUseType],
    scope: 'operator',
    description: 'The servers that had an address in the last twelve months, the latest first.',
    args: {
      address: t.arg({ type: 'IpAddress', required: true, description: 'The address, or one of its /64.' }),
      at: t.arg({ type: 'DateTime', description: 'Only the server that had it at this time.' }),
      limit: t.arg({ type: 'PageLimit', required: true, defaultValue: 50, description: 'How many.' }),
    },
    resolve: (_, { address, at, limit }, context) => listAddressUses(context, address, at, limit),
  }),
}));

builder.mutationFields((t) => ({
  addAddressPool: t.field({
    type: AddressPoolType,
    scope: 'operator',
    right: 'owner',
    description:
      'Adds a network to a bastion, for one kind of server. Without a network of IPv6, new servers there have no IPv6.',
    args: { input: t.arg({ type: AddAddressPoolInput, required: true }) },
    resolve: (_, { input }, context) => addAddressPool(context, input),
  }),
  removeAddressPool: t.field({
    type: AddressPoolType,
    scope: 'operator',
    right: 'owner',
    description: 'Removes a network. No machine may have an address of it.',
    args: { id: t.arg({ type: 'ID', required: true, description: 'The network.' }) },
    resolve: (_, { id }, context) => removeAddressPool(context, id),
  }),
}));
