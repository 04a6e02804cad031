/** Servers: changing them, and quoting an order. */
import { type OrderedServer, orderServer } from '../../resolvers/servers/order.ts';
import { type Quote, quoteServer } from '../../resolvers/servers/quote.ts';
import { type UpdatedServer, updateServer } from '../../resolvers/servers/update.ts';
import { builder, enumType, inputType, objectType } from '../builder.ts';
import { StockLevel } from '../catalog/catalog.ts';
import { paymentArgs } from '../payments/x402.ts';
import { OrderedServerType, orderFields, orderOf, ServerType } from './servers.ts';

const PowerState = enumType('PowerState', 'The power of a server.', ['ON', 'OFF']);
const ServerAction = enumType(
  'ServerAction',
  'Reboot restarts the system, reset cuts the power, and rebuild installs an image anew.',
  ['REBOOT', 'RESET', 'REBUILD'],
);

const UpdateServerInput = builder.inputType('UpdateServerInput', {
  description: 'Any of the fields, and at most one operation: power_state, action or service_code.',
  fields: (t) => ({
    hostname: t.field({ type: 'Hostname', description: 'The machine takes the new name at its next rebuild.' }),
    labels: t.field({ type: 'Labels', description: 'Replaces all labels.' }),
    autoRenew: t.boolean({ description: 'Whether the balance pays the next month.' }),
    deleteProtection: t.boolean({ description: 'Whether the service refuses to delete the server.' }),
    reverseDns: t.field({ type: 'ReverseDnsList', description: 'Replaces all names of the addresses of the server.' }),
    powerState: t.field({
      type: PowerState,
      description: 'Starts or stops the server. No effect if it is so already.',
    }),
    action: t.field({ type: ServerAction, description: 'Reboots, resets or rebuilds the server.' }),
    serviceCode: t.field({
      type: 'Code',
      description: 'Resizes a stopped VPS to a larger tier. The difference for the rest of the month is charged.',
    }),
    os: t.field({ type: 'Code', description: 'With a rebuild: the image. Default: the present one.' }),
    sshKeyIds: t.field({ type: 'SshKeyIds', description: 'With a rebuild: the keys. Default: the present ones.' }),
    userData: t.field({
      type: 'UserData',
      description: 'With a rebuild: cloud-init user data. Default: none.',
    }),
    rootPassword: t.field({
      type: 'RootPassword',
      description: 'With a rebuild. Default: a random one if there is no SSH key.',
    }),
  }),
});

const UpdatedServerType = objectType<UpdatedServer>('UpdatedServer', 'A server in change.', (t) => ({
  server: t.expose('server', { type: ServerType }),
  chargedUsd: t.expose('chargedMicros', {
    type: 'Usd',
    description: 'The charge of a resize. A failed resize gives it back.',
  }),
  rootPassword: t.exposeString('rootPassword', {
    nullable: true,
    description:
      'The given password of a rebuild, or a generated one if there is no SSH key. Only this answer shows it.',
  }),
}));

const QuoteType = objectType<Quote>('Quote', 'The price of an order. A quote orders nothing.', (t) => ({
  serviceCode: t.exposeString('serviceCode', { description: 'The code of the tier.' }),
  region: t.exposeString('region', { description: 'The bastion of the server.' }),
  totalUsd: t.expose('totalMicros', { type: 'Usd', description: 'The first month and the setup fee.' }),
  setupFeeUsd: t.expose('setupFeeMicros', { type: 'Usd' }),
  priceMonthUsd: t.expose('priceMonthMicros', { type: 'Usd' }),
  balanceUsd: t.expose('balanceMicros', { type: 'Usd', description: 'The available balance.' }),
  sufficient: t.exposeBoolean('sufficient', { description: 'Whether the balance covers the total.' }),
  stock: t.expose('stock', { type: StockLevel, description: 'The stock of the tier at that bastion.' }),
}));

const isQuote = (value: OrderedServer | Quote): value is Quote => 'sufficient' in value;
const OrderOutcome = builder.unionType('OrderOutcome', {
  description: 'The ordered server, or with dry_run the quote.',
  types: [OrderedServerType, QuoteType],
  resolveType: (value) => (isQuote(value as Quote) ? 'Quote' : 'OrderedServer'),
});
const PlaceOrderInput = inputType('PlaceOrderInput', (t) => ({
  ...orderFields(t),
  dryRun: t.boolean({ required: true, defaultValue: false, description: 'Quotes the order, and orders nothing.' }),
}));

builder.queryFields((t) => ({
  quoteServer: t.field({
    type: QuoteType,
    scope: 'servers',
    description: 'Quotes an order, by the same checks. It orders nothing.',
    args: {
      serviceCode: t.arg({ type: 'Code', required: true, description: 'The code of a VPS or dedicated tier.' }),
      region: t.arg({ type: 'Code', description: 'The code of a bastion. Default: the first with stock.' }),
      os: t.arg({ type: 'Code', required: true, defaultValue: 'debian-13', description: 'The code of an image.' }),
    },
    resolve: (_, asked, context) => quoteServer(context, asked),
  }),
}));

builder.mutationFields((t) => ({
  placeOrder: t.field({
    type: OrderOutcome,
    scope: 'servers',
    errors: [
      'unknown_service_code',
      'unknown_region',
      'unknown_os',
      'unknown_ssh_key',
      'out_of_stock',
      'price_exceeds_max',
      'insufficient_balance',
      'spend_limit_exceeded',
      'server_limit_reached',
    ],
    description: 'Does orderServer, or with dryRun quoteServer. REST has one endpoint for both.',
    args: { input: t.arg({ type: PlaceOrderInput, required: true }), ...paymentArgs() },
    resolve: (_, { input: { dryRun, ...order }, ...payment }, context): Promise<OrderedServer | Quote> =>
      dryRun ? quoteServer(context, orderOf(order)) : orderServer(context, orderOf(order), payment),
  }),
  updateServer: t.field({
    type: UpdatedServerType,
    scope: 'servers',
    errors: [
      'one_operation_per_request',
      'server_busy',
      'server_not_stopped',
      'server_suspended',
      'resize_not_possible',
      'unknown_service_code',
      'unknown_os',
      'unknown_ssh_key',
      'out_of_stock',
      'insufficient_balance',
      'spend_limit_exceeded',
    ],
    description:
      'Changes fields at once, and starts at most one operation. The operation ends when the status is stable.',
    args: {
      orderNumber: t.arg({ type: 'ID', required: true, description: 'The order number of the server.' }),
      input: t.arg({ type: UpdateServerInput, required: true }),
    },
    resolve: (_, { orderNumber, input }, context) => updateServer(context, orderNumber, input),
  }),
}));
