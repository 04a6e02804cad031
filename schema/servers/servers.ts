/** Servers: ordering, reading, deleting and watching them. */
import type { ShownServer } from '../../entities/servers/server.ts';
import { type DeletedServer, deleteServer, removeServer } from '../../resolvers/servers/delete.ts';
import { listServers, SERVER_STATUSES, STABLE, waitForServer } from '../../resolvers/servers/find.ts';
import { trafficUsedGb } from '../../resolvers/servers/metrics.ts';
import { type OrderedServer, orderServer } from '../../resolvers/servers/order.ts';
import { type ServerEvent, watchServers } from '../../resolvers/subscriptions.ts';
import { builder, enumType, inputType, objectType } from '../builder.ts';
import { CatalogItemType, loadOffer } from '../catalog/catalog.ts';
import { madeArgs, pageArgs, pageOf } from '../pages.ts';

export const ServerStatus = enumType(
  'ServerStatus',
  'Running, stopped, suspended, failed and deleted are stable; in the others, an operation runs.',
  SERVER_STATUSES,
);
export const ServerKind = enumType('ServerKind', 'The kind of a server.', ['VPS', 'DEDICATED']);

const ReverseDns = objectType<ShownServer['reverseDns'][number]>(
  'ReverseDns',
  'The reverse DNS name of an address.',
  (t) => ({
    ip: t.exposeString('ip', { description: 'An address of the server.' }),
    ptr: t.exposeString('ptr', { description: 'Its name.' }),
  }),
);
const Failure = objectType<{ code: string; message: string }>('Failure', 'The reason of a failure.', (t) => ({
  code: t.exposeString('code', { description: 'Such as out_of_stock or provisioning_failed.' }),
  message: t.exposeString('message', { description: 'The reason in words.' }),
}));

/** Seconds between two reads while an operation runs. */
const POLL_AFTER_SECONDS = 2;

export const ServerType = objectType<ShownServer>('Server', 'A virtual or dedicated server.', (t) => ({
  orderNumber: t.exposeID('orderNumber', { description: 'The id of the server.' }),
  accountId: t.exposeID('accountId', { description: 'Its customer.' }),
  kind: t.expose('kind', { type: ServerKind, description: 'A virtual server, or a whole machine.' }),
  status: t.expose('status', {
    type: ServerStatus,
    description:
      'Lasting: running, stopped, suspended (unpaid or by the operator), failed (refunded), deleted. Passing: pending (paid, not begun), provisioning, starting, stopping, rebooting, rebuilding, resizing, deleting.',
  }),
  hostname: t.exposeString('hostname', { description: 'The name that the machine got.' }),
  serviceCode: t.exposeString('serviceCode', { description: 'The code of its tier.' }),
  region: t.exposeString('region', { description: 'The code of its bastion.' }),
  os: t.exposeString('os', { description: 'The code of its image.' }),
  ipv4: t.exposeString('ipv4', { nullable: true, description: 'Null until it has one.' }),
  ipv6: t.exposeString('ipv6', { nullable: true, description: 'Null until it has one.' }),
  ipv6Prefix: t.exposeString('ipv6Prefix', { nullable: true, description: 'The prefix that is routed to the server.' }),
  reverseDns: t.expose('reverseDns', { type: [ReverseDns], description: 'The names of its addresses.' }),
  sshKeyIds: t.exposeIDList('sshKeyIds', { description: 'The SSH keys that the machine got.' }),
  labels: t.expose('labels', { type: 'Labels' }),
  autoRenew: t.exposeBoolean('autoRenew', { description: 'Whether the balance pays the next month.' }),
  deleteProtection: t.exposeBoolean('deleteProtection', { description: 'Whether the service refuses to delete it.' }),
  priceMonthUsd: t.expose('priceMonthMicros', { type: 'Usd' }),
  nextPriceMonthUsd: t.expose('nextPriceMicros', {
    type: 'Usd',
    nullable: true,
    description: 'The announced price of later months. Null: none is announced.',
  }),
  nextPriceFrom: t.expose('nextPriceFrom', {
    type: 'DateTime',
    nullable: true,
    description: 'The announced price counts for months that begin then or later.',
  }),
  paidUntil: t.expose('paidUntil', { type: 'DateTime', nullable: true, description: 'Null until the server has run.' }),
  failure: t.field({
    type: Failure,
    nullable: true,
    description: 'Why the order or the last operation failed.',
    resolve: ({ failureCode, failureMessage }) =>
      failureCode ? { code: failureCode, message: failureMessage ?? '' } : null,
  }),
  trafficUsedGb: t.float({
    nullable: true,
    description: 'The sent GB of this calendar month (UTC); null if nothing counts them.',
    resolve: (server, _, context) => trafficUsedGb(server, context),
  }),
  createdAt: t.expose('createdAt', { type: 'DateTime' }),
  updatedAt: t.expose('updatedAt', { type: 'DateTime' }),
  pollAfterSeconds: t.int({
    nullable: true,
    description: 'When to read again; null if no operation runs.',
    resolve: ({ status }) => (STABLE.has(status) ? null : POLL_AFTER_SECONDS),
  }),
  tier: t.field({
    type: CatalogItemType,
    nullable: true,
    description: 'Its tier, while the operator offers it.',
    resolve: ({ serviceCode }, _, context) => loadOffer(context, serviceCode),
  }),
}));

export const OrderedServerType = objectType<OrderedServer>('OrderedServer', 'An ordered and paid server.', (t) => ({
  server: t.expose('server', { type: ServerType }),
  chargedUsd: t.expose('chargedMicros', { type: 'Usd', description: 'The first month and the setup fee.' }),
  paidBy: t.exposeString('paidBy', { description: 'balance or x402.' }),
  rootPassword: t.exposeString('rootPassword', {
    nullable: true,
    description: 'The given password, or a generated one if there is no SSH key. Only this answer shows it.',
  }),
}));
const DeletedServerType = objectType<DeletedServer>('DeletedServer', 'A server in deletion.', (t) => ({
  server: t.expose('server', { type: ServerType }),
  refundedUsd: t.expose('refundedMicros', {
    type: 'Usd',
    description:
      'The amount that goes back to the balance. A dedicated server gets it when its host is wiped. A dedicated order that is being made answers 0, and gets its price then.',
  }),
}));
const ServerPage = pageOf('Server', ServerType);
const ServerEventType = objectType<ServerEvent>(
  'ServerEvent',
  'The latest event of a server, and the server as it is now.',
  (t) => ({
    type: t.exposeString('type', { description: 'Such as server.running.' }),
    at: t.expose('at', { type: 'DateTime' }),
    server: t.expose('server', { type: ServerType }),
  }),
);

type InputFields = Parameters<Parameters<typeof builder.inputType>[1]['fields']>[0];
/** The input of every order. */
export const orderFields = (t: InputFields) => ({
  serviceCode: t.field({ type: 'Code', required: true, description: 'The code of a VPS or dedicated tier.' }),
  region: t.field({ type: 'Code', description: 'The code of a bastion. Default: the first with stock.' }),
  os: t.field({ type: 'Code', required: true, defaultValue: 'debian-13', description: 'The code of an image.' }),
  hostname: t.field({ type: 'Hostname', description: 'Default: a random name.' }),
  sshKeyIds: t.field({ type: 'SshKeyIds', description: 'Keys of the account. Default: all of them.' }),
  rootPassword: t.field({
    type: 'RootPassword',
    description: '12 to 72 characters. Default: a random one if there is no SSH key.',
  }),
  userData: t.field({ type: 'UserData', description: 'cloud-init user data.' }),
  labels: t.field({ type: 'Labels', description: 'Up to 20 labels of your own. Keys are lower-case.' }),
  autoRenew: t.boolean({
    description: 'Renews itself. Default: true, or false with a spending limit.',
  }),
  maxPriceUsd: t.field({ type: 'UsdLimit', description: 'The highest total price to accept.' }),
});
/** The input of an order as resolvers take it. */
export const orderOf = <T extends { maxPriceUsd?: bigint | null | undefined }>({ maxPriceUsd, ...order }: T) => ({
  ...order,
  maxPriceMicros: maxPriceUsd,
});
const OrderServerInput = inputType('OrderServerInput', orderFields);

builder.queryFields((t) => ({
  server: t.field({
    type: ServerType,
    scope: 'read',
    description: 'One server.',
    args: {
      orderNumber: t.arg({ type: 'ID', required: true, description: 'The order number of the server.' }),
      waitFor: t.arg({
        type: ServerStatus,
        description: 'Answers when the server has this status, or another stable one.',
      }),
      timeout: t.arg({
        type: 'WaitSeconds',
        required: true,
        defaultValue: 25,
        description: 'The longest wait, in seconds.',
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
      status: t.arg({ type: [ServerStatus], description: 'Only servers with one of these statuses.' }),
      ...madeArgs(),
      region: t.arg({ type: ['Code'], description: 'Only servers at these bastions.' }),
      hostname: t.arg({ type: 'Hostname', description: 'Only servers with this hostname.' }),
      labelSelector: t.arg({ type: 'LabelSelector', description: 'Only servers with these labels: k=v,k2!=v.' }),
    },
    resolve: (_, { limit, cursor, ...filter }, context) => listServers(context, { limit, cursor }, filter),
  }),
}));

builder.mutationFields((t) => ({
  orderServer: t.field({
    type: OrderedServerType,
    scope: 'servers',
    description:
      'Orders a server and pays its first month from the balance. The server is ready when its status is running.',
    args: { input: t.arg({ type: OrderServerInput, required: true }) },
    resolve: (_, { input }, context) => orderServer(context, orderOf(input)),
  }),
  deleteServer: t.field({
    type: DeletedServerType,
    scope: 'servers',
    errors: ['delete_protected'],
    whileSuspended: true,
    description: 'Deletes a server permanently, and refunds its unused hours.',
    args: { orderNumber: t.arg({ type: 'ID', required: true, description: 'The order number of the server.' }) },
    resolve: (_, { orderNumber }, context) => deleteServer(context, orderNumber),
  }),
  removeServer: t.field({
    type: DeletedServerType,
    scope: 'operator',
    right: 'support',
    description: 'Deletes a server for the operator, also a protected one.',
    args: {
      orderNumber: t.arg({ type: 'ID', required: true, description: 'The order number of the server.' }),
      refund: t.arg.boolean({ required: true, description: 'Whether the customer gets the unused hours back.' }),
      reason: t.arg({ type: 'Line', required: true, description: 'The reason, which the customer can read.' }),
    },
    resolve: (_, args, context) => removeServer(context, args),
  }),
}));

builder.subscriptionFields((t) => ({
  serverUpdated: t.field({
    type: ServerEventType,
    scope: 'read',
    description: 'One server, or all: first the present state, then each change.',
    args: { orderNumber: t.arg({ type: 'ID', description: 'The order number of a server. Default: all servers.' }) },
    subscribe: (_, { orderNumber }, context) => watchServers(context, orderNumber),
    resolve: (event: ServerEvent) => event,
  }),
}));
