/** Payments in coins, gateways and exchange rates, for the operator. */
import type { Payment } from '../../entities/payments/payment.ts';
import {
  type ExchangeRateView,
  type GatewayView,
  listExchangeRates,
  listGateways,
} from '../../resolvers/payments/gateways.ts';
import { assignPayment, listPayments, PAYMENT_STATUSES, writeOff } from '../../resolvers/payments/payments.ts';
import { builder, enumType, objectType } from '../builder.ts';
import { pageArgs, pageOf } from '../pages.ts';

const PaymentStatus = enumType(
  'PaymentStatus',
  'SEEN: announced. MINED: in a block. CREDITED: in the balance. UNMATCHED: in another coin than requested, in suspense. ORPHANED: removed by its chain before the credit. REVERSED: removed after the credit. WRITTEN_OFF: reversed, and given up by the operator.',
  PAYMENT_STATUSES,
);
const PaymentType = objectType<Payment>(
  'Payment',
  'A payment in coins. Its network, transaction and position identify it.',
  (t) => ({
    id: t.exposeID('id'),
    network: t.exposeString('network'),
    txId: t.exposeString('txId'),
    position: t.exposeInt('position'),
    coin: t.exposeString('coin'),
    address: t.exposeString('address'),
    accountId: t.exposeID('accountId', { description: 'The account that owns the address.' }),
    orderNumber: t.exposeID('orderNumber', { description: 'The top-up that owns the address.' }),
    units: t.exposeString('units', { description: 'The amount in the smallest unit of the coin.' }),
    status: t.expose('status', { type: PaymentStatus }),
    height: t.exposeInt('height', { nullable: true, description: 'The height of its block.' }),
    confirmations: t.exposeInt('confirmations'),
    creditedUsd: t.expose('creditedMicros', { type: 'Usd', description: 'Its value when the service credited it.' }),
    reversedUsd: t.expose('reversedMicros', {
      type: 'Usd',
      description: 'The part that the service took out of the balance after the reversal.',
    }),
    seenAt: t.expose('seenAt', { type: 'DateTime' }),
    creditedAt: t.expose('creditedAt', { type: 'DateTime', nullable: true }),
    missingSince: t.expose('missingSince', {
      type: 'DateTime',
      nullable: true,
      description: 'When the wallet or processor stopped reporting the credited payment.',
    }),
  }),
);
const PaymentPage = pageOf('Payment', PaymentType);

const ChainType = objectType<GatewayView['chains'][number]>('Chain', 'The progress of reading a chain.', (t) => ({
  network: t.exposeString('network'),
  height: t.exposeInt('height', {
    nullable: true,
    description: 'The height of the last block that the worker has read.',
  }),
  lagBlocks: t.exposeInt('lagBlocks', {
    nullable: true,
    description: 'Blocks that the worker has yet to read. Null: the node does not answer.',
  }),
}));
const GatewayType = objectType<GatewayView>('Gateway', 'A gateway that receives coins.', (t) => ({
  name: t.exposeString('name'),
  simulated: t.exposeBoolean('simulated', { description: 'Whether its payments are simulated.' }),
  coins: t.exposeStringList('coins'),
  reachable: t.exposeBoolean('reachable'),
  warning: t.exposeString('warning', {
    nullable: true,
    description:
      'A problem to solve before the gateway stops accepting payments. The event gateway.warned reported it once.',
  }),
  chains: t.expose('chains', { type: [ChainType], description: 'The chains that it reads block by block.' }),
}));

const SourceType = objectType<ExchangeRateView['sources'][number]>(
  'RateSource',
  'The last report of a source.',
  (t) => ({
    name: t.exposeString('source'),
    rateUsd: t.expose('rateMicros', { type: 'Usd' }),
    observedAt: t.expose('observedAt', { type: 'DateTime' }),
  }),
);
const RateType = objectType<ExchangeRateView>('Rate', 'The exchange rate of a coin.', (t) => ({
  coin: t.exposeString('coin'),
  rateUsd: t.expose('quoteMicros', {
    type: 'Usd',
    nullable: true,
    description: 'The rate for new top-ups. Null: its sources disagree, or have reported nothing for ten minutes.',
  }),
  sources: t.expose('sources', { type: [SourceType] }),
}));

builder.queryFields((t) => ({
  payments: t.field({
    type: PaymentPage,
    scope: 'operator',
    description:
      'Payments in coins of all accounts, newest first. The operator decides about UNMATCHED and REVERSED ones.',
    args: {
      ...pageArgs(),
      status: t.arg({ type: PaymentStatus, description: 'Only payments in this state.' }),
      orderNumber: t.arg({ type: 'ID', description: 'Only payments of this top-up.' }),
    },
    resolve: (_, { status, orderNumber, ...page }, context) => listPayments(context, page, { status, orderNumber }),
  }),
  gateways: t.field({
    type: [GatewayType],
    scope: 'operator',
    description:
      'The payment gateways, and the progress of their chains. It asks each gateway. The public listener is among them if it has a warning.',
    resolve: (_, __, context) => listGateways(context),
  }),
  rates: t.field({
    type: [RateType],
    scope: 'operator',
    description: 'The exchange rates of coins, with their sources.',
    resolve: (_, __, context) => listExchangeRates(context),
  }),
}));

builder.mutationFields((t) => ({
  assignPayment: t.field({
    type: PaymentType,
    scope: 'operator',
    description: 'Assigns a payment in another coin to the account that owns its address.',
    args: {
      id: t.arg({ type: 'ID', required: true, description: 'The id of an unmatched payment.' }),
      reason: t.arg({ type: 'Line', required: true, description: 'The reason, kept with the event.' }),
    },
    resolve: (_, { id, reason }, context) => assignPayment(context, id, reason),
  }),
  writeOffPayment: t.field({
    type: PaymentType,
    scope: 'operator',
    description:
      'Writes off a payment that its chain has removed. If the chain mines it again, the service credits it.',
    args: {
      id: t.arg({ type: 'ID', required: true, description: 'The id of a reversed payment.' }),
      reason: t.arg({ type: 'Line', required: true, description: 'The reason, kept with the event.' }),
    },
    resolve: (_, { id, reason }, context) => writeOff(context, id, reason),
  }),
}));
