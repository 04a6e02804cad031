/** Servers: change, and quote before ordering. */

import { type OrderedServer, orderServer } from '../../resolvers/servers/order.ts';
import { type Quote, quoteServer } from '../../resolvers/servers/quote.ts';
import { type UpdatedServer, updateServer } from '../../resolvers/servers/update.ts';
import { builder } from '../builder.ts';
import { StockLevel } from '../catalog/catalog.ts';
import { paymentArgs } from '../payments/x402.ts';
import { OrderedServerType, orderFields, ServerType } from './servers.ts';

const PowerState = builder.enumType('PowerState', { description: 'On or off.', values: ['ON', 'OFF'] as const });
const ServerAction = builder.enumType('ServerAction', {
  description: 'Reboot asks the system to, reset cuts the power, rebuild makes the server anew from an image.',
  values: ['REBOOT', 'RESET', 'REBUILD'] as const,
});

const UpdateServerInput = builder.inputType('UpdateServerInput', {
  description: 'Any of the fields, and at most one operation: power_state, action or service_code.',
  fields: (t) => ({
    hostname: t.field({ type: 'Hostname', description: 'The machine itself takes it with the next rebuild.' }),
    labels: t.field({ type: 'Labels', description: 'Replaces all labels.' }),
    autoRenew: t.boolean({ description: 'Whether the next month is paid from the balance.' }),
    deleteProtection: t.boolean({ description: 'Whether deletion is refused.' }),
    reverseDns: t.field({ type: 'ReverseDnsList', description: 'Replaces all names of the addresses of the server.' }),
    powerState: t.field({ type: PowerState, description: 'Starts or stops it; nothing happens if it is so already.' }),
    action: t.field({ type: ServerAction, description: 'Reboots, resets or rebuilds it.' }),
    serviceCode: t.field({
      type: 'Code',
      description: 'Resizes a stopped VPS to a larger tier. The difference for the rest of the month is charged.',
    }),
    os: t.field({ type: 'Code', description: 'With a rebuild: the image; by default the same again.' }),
    sshKeyIds: t.field({ type: 'SshKeyIds', description: 'With a rebuild: the keys; by default the same again.' }),
    userData: t.field({ type: 'UserData', description: 'With a rebuild: cloud-init; by default the same again.' }),
    rootPassword: t.field({
      type: 'RootPassword',
      description: 'With a rebuild; made up if absent and there is no SSH key.',
    }),
  }),
});

const UpdatedServerType = builder.objectRef<UpdatedServer>('UpdatedServer').implement({
  description: 'A server that is being changed.',
  fields: (t) => ({
    server: t.expose('server', { type: ServerType }),
    chargedUsd: t.expose('chargedMicros', { type: 'Usd', description: 'Of a resize; given back if it fails.' }),
    rootPassword: t.exposeString('rootPassword', {
      nullable: true,
      description: 'Of a rebuild without an SSH key, or if one was given. It is shown here and never again.',
    }),
  }),
});

const QuoteType = builder.objectRef<Quote>('Quote').implement({
  description: 'What an order would come to. Nothing is ordered.',
  fields: (t) => ({
    serviceCode: t.exposeString('serviceCode', { description: 'The code of the tier.' }),
    region: t.exposeString('region', { description: 'The bastion that it would be at.' }),
    totalUsd: t.expose('totalMicros', { type: 'Usd', description: 'The first month and the setup fee.' }),
    setupFeeUsd: t.expose('setupFeeMicros', { type: 'Usd' }),
    priceMonthUsd: t.expose('priceMonthMicros', { type: 'Usd' }),
    balanceUsd: t.expose('balanceMicros', { type: 'Usd', description: 'What the account can spend now.' }),
    sufficient: t.exposeBoolean('sufficient', { description: 'Whether the balance covers it.' }),
    stock: t.expose('stock', { type: StockLevel, description: 'How much there is of the tier at that bastion.' }),
  }),
});

const isQuote = (value: OrderedServer | Quote): value is Quote => 'sufficient' in value;
const OrderOutcome = builder.unionType('OrderOutcome', {
  description: 'A server that has been ordered, or with dry_run what it would come to.',
  types: [OrderedServerType, QuoteType],
  resolveType: (value) => (isQuote(value as Quote) ? 'Quote' : 'OrderedServer'),
});
const PlaceOrderInput = builder.inputType('PlaceOrderInput', {
  fields: (t) => ({
    ...orderFields(t),
    dryRun: t.boolean({ required: true, defaultValue: false, description: 'Only says what the order would come to.' }),
  }),
});

builder.queryFields((t) => ({
  quoteServer: t.field({
    type: QuoteType,
    scope: 'servers',
    description: 'What an order would come to, by the same checks. Nothing is ordered.',
    args: {
      serviceCode: t.arg({ type: 'Code', required: true, description: 'The code of a VPS or dedicated tier.' }),
      region: t.arg({ type: 'Code', description: 'The code of a bastion; by default the first with stock.' }),
      os: t.arg({ type: 'Code', required: true, defaultValue: 'debian-13', description: 'The code of an image.' }),
    },
    resolve: (_, asked, context) => quoteServer(context, { ...asked, autoRenew: true }),
  }),
}));

builder.mutationFields((t) => ({
  placeOrder: t.field({
    type: OrderOutcome,
    scope: 'servers',
    description: 'orderServer, and with dryRun quoteServer: the two that are one endpoint in REST.',
    args: { input: t.arg({ type: PlaceOrderInput, required: true }), ...paymentArgs() },
    resolve: (_, { input: { dryRun, ...order }, ...payment }, context): Promise<OrderedServer | Quote> =>
      dryRun ? quoteServer(context, order) : orderServer(context, order, payment),
  }),
  updateServer: t.field({
    type: UpdatedServerType,
    scope: 'servers',
    description:
      'Changes a server: fields at once, and at most one operation, which is over when the status is settled.',
    args: {
      orderNumber: t.arg({ type: 'ID', required: true, description: 'The order number of the server.' }),
      input: t.arg({ type: UpdateServerInput, required: true }),
    },
    resolve: (_, { orderNumber, input }, context) => updateServer(context, orderNumber, input),
  }),
}));
