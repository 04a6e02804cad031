/** Servers: order, read, delete, watch. */
import type { ShownServer } from '../../entities/servers/server.ts';
import { type DeletedServer, deleteServer } from '../../resolvers/servers/delete.ts';
import { listServers, SERVER_STATUSES, waitForServer } from '../../resolvers/servers/find.ts';
import { type OrderedServer, orderServer } from '../../resolvers/servers/order.ts';
import { type ServerEvent, watchServers } from '../../resolvers/subscriptions.ts';
import { builder } from '../builder.ts';
import { CatalogItemType, loadOffer } from '../catalog/catalog.ts';
import { pageArgs, pageOf } from '../pages.ts';

const ServerStatus = builder.enumType('ServerStatus', {
  description: 'Running, stopped, suspended, failed and deleted are settled.',
  values: SERVER_STATUSES,
});
export const ServerKind = builder.enumType('ServerKind', {
  description: 'Virtual or dedicated.',
  values: ['VPS', 'DEDICATED'] as const,
});

const ReverseDns = builder.objectRef<ShownServer['reverseDns'][number]>('ReverseDns').implement({
  description: 'The name of an address.',
  fields: (t) => ({ ip: t.exposeString('ip'), ptr: t.exposeString('ptr') }),
});
const Failure = builder.objectRef<{ code: string; message: string }>('Failure').implement({
  description: 'Why something did not work.',
  fields: (t) => ({ code: t.exposeString('code'), message: t.exposeString('message') }),
});

/** How often to ask while something is under way. */
const POLL_AFTER_SECONDS = 2;
const IN_PROGRESS: ReadonlySet<string> = new Set([
  'PENDING',
  'PROVISIONING',
  'STARTING',
  'STOPPING',
  'REBOOTING',
  'REBUILDING',
  'RESIZING',
  'DELETING',
]);

export const ServerType = builder.objectRef<ShownServer>('Server').implement({
  description: 'A virtual or dedicated server.',
  fields: (t) => ({
    orderNumber: t.exposeID('orderNumber', { description: 'Identifies the server.' }),
    kind: t.expose('kind', { type: ServerKind }),
    status: t.expose('status', { type: ServerStatus }),
    hostname: t.exposeString('hostname'),
    serviceCode: t.exposeString('serviceCode', { description: 'The code of its tier.' }),
    region: t.exposeString('region', { description: 'The code of its bastion.' }),
    os: t.exposeString('os', { description: 'The code of its image.' }),
    ipv4: t.exposeString('ipv4', { nullable: true }),
    ipv6: t.exposeString('ipv6', { nullable: true }),
    ipv6Prefix: t.exposeString('ipv6Prefix', { nullable: true, description: 'The prefix that is routed to it.' }),
    reverseDns: t.expose('reverseDns', { type: [ReverseDns] }),
    sshKeyIds: t.exposeIDList('sshKeyIds', { description: 'The keys it was made with.' }),
    labels: t.expose('labels', { type: 'Labels' }),
    autoRenew: t.exposeBoolean('autoRenew', { description: 'Whether the next month is paid from the balance.' }),
    deleteProtection: t.exposeBoolean('deleteProtection'),
    priceMonthUsd: t.expose('priceMonthMicros', { type: 'Usd' }),
    paidUntil: t.expose('paidUntil', { type: 'DateTime', nullable: true, description: 'Null until it has run.' }),
    failure: t.field({
      type: Failure,
      nullable: true,
      description: 'Why it failed, or fell back to the state before.',
      resolve: ({ failureCode, failureMessage }) =>
        failureCode ? { code: failureCode, message: failureMessage ?? '' } : null,
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime' }),
    pollAfterSeconds: t.int({
      nullable: true,
      description: 'When to ask again; null if nothing is under way.',
      resolve: ({ status }) => (IN_PROGRESS.has(status) ? POLL_AFTER_SECONDS : null),
    }),
    tier: t.field({
      type: CatalogItemType,
      nullable: true,
      description: 'Its tier, while that is still offered.',
      resolve: ({ serviceCode }, _, context) => loadOffer(context, serviceCode),
    }),
  }),
});

export const OrderedServerType = builder.objectRef<OrderedServer>('OrderedServer').implement({
  description: 'A server that has been ordered and paid for.',
  fields: (t) => ({
    server: t.expose('server', { type: ServerType }),
    chargedUsd: t.expose('chargedMicros', { type: 'Usd', description: 'The first month and the setup fee.' }),
    paidBy: t.exposeString('paidBy', { description: 'balance or x402.' }),
    rootPassword: t.exposeString('rootPassword', {
      nullable: true,
      description: 'Only without an SSH key, or if one was given. It is shown here and never again.',
    }),
  }),
});
const DeletedServerType = builder.objectRef<DeletedServer>('DeletedServer').implement({
  description: 'A server that is being deleted.',
  fields: (t) => ({
    server: t.expose('server', { type: ServerType }),
    refundedUsd: t.expose('refundedMicros', { type: 'Usd', description: 'What went back to the balance.' }),
  }),
});
const ServerPage = pageOf('Server', ServerType);
const ServerEventType = builder.objectRef<ServerEvent>('ServerEvent').implement({
  description: 'The latest event of a server, and the server as it is now.',
  fields: (t) => ({
    type: t.exposeString('type', { description: 'Such as server.running.' }),
    at: t.expose('at', { type: 'DateTime' }),
    server: t.expose('server', { type: ServerType }),
  }),
});

type InputFields = Parameters<Parameters<typeof builder.inputType>[1]['fields']>[0];
/** What every way of ordering asks for. */
export const orderFields = (t: InputFields) => ({
  serviceCode: t.field({ type: 'Code', required: true, description: 'The code of a VPS or dedicated tier.' }),
  region: t.field({ type: 'Code', description: 'The code of a bastion; by default the first with stock.' }),
  os: t.field({ type: 'Code', required: true, defaultValue: 'debian-13', description: 'The code of an image.' }),
  hostname: t.field({ type: 'Hostname', description: 'Made up if absent.' }),
  sshKeyIds: t.field({ type: 'SshKeyIds', description: 'Keys of the account; by default all of them.' }),
  rootPassword: t.field({ type: 'RootPassword', description: 'Made up if absent and there is no SSH key.' }),
  userData: t.field({ type: 'UserData', description: 'cloud-init user data.' }),
  labels: t.field({ type: 'Labels', description: 'Your own labels.' }),
  autoRenew: t.boolean({
    required: true,
    defaultValue: true,
    description: 'Whether the next month is paid from the balance.',
  }),
  maxPriceUsd: t.field({ type: 'Usd', description: 'Refuse the order if it costs more.' }),
});
const OrderServerInput = builder.inputType('OrderServerInput', { fields: orderFields });

builder.queryFields((t) => ({
  server: t.field({
    type: ServerType,
    scope: 'read',
    description: 'One server.',
    args: {
      orderNumber: t.arg({ type: 'ID', required: true, description: 'The order number of the server.' }),
      waitFor: t.arg({
        type: ServerStatus,
        description: 'Answer when the server has this status, or is settled in another.',
      }),
      timeout: t.arg({
        type: 'WaitSeconds',
        required: true,
        defaultValue: 25,
        description: 'How long to wait at most, in seconds.',
      }),
    },
    resolve: (_, { orderNumber, waitFor, timeout }, context) =>
      waitForServer(context, orderNumber, { waitFor, timeoutSeconds: timeout }),
  }),
  servers: t.field({
    type: ServerPage,
    scope: 'read',
    description: 'The servers of the account, newest first, without deleted ones.',
    args: {
      ...pageArgs(),
      status: t.arg({ type: [ServerStatus], description: 'Only those in one of these states.' }),
      region: t.arg({ type: 'Code', description: 'Only those at this bastion.' }),
      hostname: t.arg({ type: 'Hostname', description: 'Only those of this name.' }),
      labelSelector: t.arg({ type: 'LabelSelector', description: 'Only those with these labels: k=v,k2!=v.' }),
    },
    resolve: (_, { limit, cursor, ...filter }, context) => listServers(context, { limit, cursor }, filter),
  }),
}));

builder.mutationFields((t) => ({
  orderServer: t.field({
    type: OrderedServerType,
    scope: 'servers',
    description: 'Orders a server and pays its first month from the balance. It runs when its status says so.',
    args: { input: t.arg({ type: OrderServerInput, required: true }) },
    resolve: (_, { input }, context) => orderServer(context, input),
  }),
  deleteServer: t.field({
    type: DeletedServerType,
    scope: 'servers',
    whileSuspended: true,
    description: 'Deletes a server for good, and refunds its unused hours.',
    args: { orderNumber: t.arg({ type: 'ID', required: true, description: 'The order number of the server.' }) },
    resolve: (_, { orderNumber }, context) => deleteServer(context, orderNumber),
  }),
}));

builder.subscriptionFields((t) => ({
  serverUpdated: t.field({
    type: ServerEventType,
    scope: 'read',
    description: 'One server, or all: the present state first, then each change.',
    args: { orderNumber: t.arg({ type: 'ID', description: 'The order number of a server; absent: all of them.' }) },
    subscribe: (_, { orderNumber }, context) => watchServers(context, orderNumber),
    resolve: (event: ServerEvent) => event,
  }),
}));
