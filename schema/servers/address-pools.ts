/** The networks that machines have their addresses of, for the operator. */
import type { AddressPoolView } from '../../entities/servers/address-pool.ts';
import { addAddressPool, listAddressPools, removeAddressPool } from '../../resolvers/servers/address-pools.ts';
import { builder } from '../builder.ts';

const AddressPoolType = builder.objectRef<AddressPoolView>('AddressPool').implement({
  description: 'A network. Counted are addresses, or /64s of an IPv6 prefix.',
  fields: (t) => ({
    id: t.exposeID('id'),
    region: t.exposeString('regionCode'),
    cidr: t.exposeString('cidr'),
    gateway: t.exposeString('gateway', { nullable: true, description: 'Null: hosts route the addresses.' }),
    total: t.exposeInt('total'),
    held: t.exposeInt('held', { description: 'How many machines have.' }),
    resting: t.exposeInt('resting', { description: 'How many were freed a moment ago, and are not given out yet.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
  }),
});
const AddAddressPoolInput = builder.inputType('AddAddressPoolInput', {
  fields: (t) => ({
    region: t.field({ type: 'Code', required: true, description: 'The code of a bastion.' }),
    cidr: t.field({
      type: 'Cidr',
      required: true,
      description: 'IPv4: /16 to /32. IPv6: /48 to /64, of which each machine gets a /64.',
    }),
    gateway: t.field({ type: 'IpAddress', description: 'Without it, hosts route the addresses.' }),
    first: t.field({ type: 'IpAddress', description: 'The first usable address (IPv4). By default the first.' }),
    last: t.field({ type: 'IpAddress', description: 'The last usable address (IPv4). By default the last.' }),
  }),
});

builder.queryFields((t) => ({
  addressPools: t.field({
    type: [AddressPoolType],
    scope: 'operator',
    description: 'The networks.',
    args: { region: t.arg({ type: 'Code', description: 'Of that bastion only.' }) },
    resolve: (_, { region }, context) => listAddressPools(context, region),
  }),
}));

builder.mutationFields((t) => ({
  addAddressPool: t.field({
    type: AddressPoolType,
    scope: 'operator',
    description:
      'Gives a bastion a network. From then on its machines have addresses of such networks alone, in that family.',
    args: { input: t.arg({ type: AddAddressPoolInput, required: true }) },
    resolve: (_, { input }, context) => addAddressPool(context, input),
  }),
  removeAddressPool: t.field({
    type: AddressPoolType,
    scope: 'operator',
    description: 'Takes a network back of which no machine has an address.',
    args: { id: t.arg({ type: 'ID', required: true, description: 'The network.' }) },
    resolve: (_, { id }, context) => removeAddressPool(context, id),
  }),
}));
