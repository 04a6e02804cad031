/** Payments in coins, gateways and rates, for the operator. */
import type { Payment } from '../../entities/payments/payment.ts';
import {
  type ExchangeRateView,
  type GatewayView,
  listExchangeRates,
  listGateways,
} from '../../resolvers/payments/gateways.ts';
import { assignPayment, listPayments, PAYMENT_STATUSES, writeOff } from '../../resolvers/payments/payments.ts';
import { builder } from '../builder.ts';
import { pageArgs, pageOf } from '../pages.ts';

const PaymentStatus = builder.enumType('PaymentStatus', {
  description:
    'Seen: announced. Mined: in a block. Credited: in the balance. Unmatched: in another coin than was asked for, in suspense. Orphaned: taken back before it was credited. Reversed: taken back after it. Written off: a reversed one that nobody waits for.',
  values: PAYMENT_STATUSES,
});
const PaymentType = builder.objectRef<Payment>('Payment').implement({
  description: 'A payment in coins, known by its network, its transaction, and its position in that.',
  fields: (t) => ({
    id: t.exposeID('id'),
    network: t.exposeString('network'),
    txId: t.exposeString('txId'),
    position: t.exposeInt('position'),
    coin: t.exposeString('coin'),
    address: t.exposeString('address'),
    accountId: t.exposeID('accountId', { description: 'Whose address it is.' }),
    orderNumber: t.exposeID('orderNumber', { description: 'The top-up whose address it is.' }),
    units: t.exposeString('units', { description: 'In the smallest unit of the coin.' }),
    status: t.expose('status', { type: PaymentStatus }),
    height: t.exposeInt('height', { nullable: true, description: 'Of its block.' }),
    confirmations: t.exposeInt('confirmations'),
    creditedUsd: t.expose('creditedMicros', { type: 'Usd', description: 'What it was worth.' }),
    reversedUsd: t.expose('reversedMicros', { type: 'Usd', description: 'What was taken back out of the balance.' }),
    seenAt: t.expose('seenAt', { type: 'DateTime' }),
    creditedAt: t.expose('creditedAt', { type: 'DateTime', nullable: true }),
    missingSince: t.expose('missingSince', {
      type: 'DateTime',
      nullable: true,
      description: 'Since when a wallet or a processor has not shown it any more, though it had been credited.',
    }),
  }),
});
const PaymentPage = pageOf('Payment', PaymentType);

const ChainType = builder.objectRef<GatewayView['chains'][number]>('Chain').implement({
  description: 'How far a chain has been read.',
  fields: (t) => ({
    network: t.exposeString('network'),
    height: t.exposeInt('height', { nullable: true, description: 'Of the last block that was read.' }),
    lagBlocks: t.exposeInt('lagBlocks', {
      nullable: true,
      description: 'Blocks that have not been read yet; null: the chain cannot be asked.',
    }),
  }),
});
const GatewayType = builder.objectRef<GatewayView>('Gateway').implement({
  description: 'By what coins come in.',
  fields: (t) => ({
    name: t.exposeString('name'),
    simulated: t.exposeBoolean('simulated', { description: 'Whether nobody pays anything.' }),
    coins: t.exposeStringList('coins'),
    reachable: t.exposeBoolean('reachable'),
    warning: t.exposeString('warning', {
      nullable: true,
      description: 'What to see to before nothing can be paid by it any more. It was told once by gateway.warned.',
    }),
    chains: t.expose('chains', { type: [ChainType], description: 'Those that it reads block by block.' }),
  }),
});

const SourceType = builder.objectRef<ExchangeRateView['sources'][number]>('RateSource').implement({
  description: 'What a source has said last.',
  fields: (t) => ({
    name: t.exposeString('source'),
    rateUsd: t.expose('rateMicros', { type: 'Usd' }),
    observedAt: t.expose('observedAt', { type: 'DateTime' }),
  }),
});
const RateType = builder.objectRef<ExchangeRateView>('Rate').implement({
  description: 'What a coin is worth.',
  fields: (t) => ({
    coin: t.exposeString('coin'),
    rateUsd: t.expose('quoteMicros', {
      type: 'Usd',
      nullable: true,
      description: 'For new top-ups; null: its sources do not agree, or have said nothing for ten minutes.',
    }),
    sources: t.expose('sources', { type: [SourceType] }),
  }),
});

builder.queryFields((t) => ({
  payments: t.field({
    type: PaymentPage,
    scope: 'operator',
    description: 'Payments in coins of all accounts, newest first. Those to decide on are UNMATCHED or REVERSED.',
    args: {
      ...pageArgs(),
      status: t.arg({ type: PaymentStatus, description: 'Only those in this state.' }),
      orderNumber: t.arg({ type: 'ID', description: 'Only those of this top-up.' }),
    },
    resolve: (_, { status, orderNumber, ...page }, context) => listPayments(context, page, { status, orderNumber }),
  }),
  gateways: t.field({
    type: [GatewayType],
    scope: 'operator',
    description: 'By what coins come in, and how far their chains have been read. Asks each of them.',
    resolve: (_, __, context) => listGateways(context),
  }),
  rates: t.field({
    type: [RateType],
    scope: 'operator',
    description: 'What coins are worth, and who says so.',
    resolve: (_, __, context) => listExchangeRates(context),
  }),
}));

builder.mutationFields((t) => ({
  assignPayment: t.field({
    type: PaymentType,
    scope: 'operator',
    description: 'Gives a payment that came in another coin to the account whose address it came to.',
    args: {
      id: t.arg({ type: 'ID', required: true, description: 'The id of an unmatched payment.' }),
      reason: t.arg({ type: 'Line', required: true, description: 'Kept with the event.' }),
    },
    resolve: (_, { id, reason }, context) => assignPayment(context, id, reason),
  }),
  writeOffPayment: t.field({
    type: PaymentType,
    scope: 'operator',
    description: 'Takes a payment that its chain has taken back out of the books. If it comes again, it is credited.',
    args: {
      id: t.arg({ type: 'ID', required: true, description: 'The id of a reversed payment.' }),
      reason: t.arg({ type: 'Line', required: true, description: 'Kept with the event.' }),
    },
    resolve: (_, { id, reason }, context) => writeOff(context, id, reason),
  }),
}));
