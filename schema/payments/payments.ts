/** Payments, gateways and exchange rates, for the operator. */
import type { Payment } from '../../entities/payments/payment.ts';
import {
  type ExchangeRateView,
  type GatewayView,
  listExchangeRates,
  listGateways,
} from '../../resolvers/payments/gateways.ts';
import {
  assign,
  creditTransaction,
  giveBack,
  listPayments,
  PAYMENT_STATUSES,
  writeOff,
} from '../../resolvers/payments/payments.ts';
import { builder, enumType, objectType } from '../builder.ts';
import { pageArgs, pageOf } from '../pages.ts';
import { PaymentMode } from './billing.ts';

const PaymentStatus = enumType(
  'PaymentStatus',
  'OBSERVED: announced, or signed by x402. CONFIRMING: in a block. CREDITED: in the balance. FINAL: in the balance, and the chain cannot remove it. UNMATCHED: in suspense until the operator decides. ASSIGNED: credited by the operator. DROPPED: gone before its credit. REVERSED: removed by its chain after its credit. WRITTEN_OFF: given up by the operator, or less than 1 USD in another coin than asked for. RETURNED: sent back by the operator.',
  PAYMENT_STATUSES,
);
export const PaymentType = objectType<Payment>('Payment', 'A payment from any source. Its key identifies it.', (t) => ({
  id: t.exposeID('id'),
  mode: t.expose('mode', { type: PaymentMode }),
  key: t.exposeString('externalKey', {
    description: 'Names the network, the transaction and the position; with x402 the network, the payer and the nonce.',
  }),
  network: t.exposeString('network', { description: 'With x402 as in CAIP-2, such as eip155:8453.' }),
  txId: t.exposeString('txId', { nullable: true, description: 'The transaction that moved it.' }),
  position: t.exposeInt('position', { nullable: true }),
  coin: t.exposeString('coin'),
  address: t.exposeString('address'),
  accountId: t.exposeID('accountId', {
    description: 'The account that owns the address, sent the authorization, or got it from the operator.',
  }),
  orderNumber: t.exposeID('orderNumber', {
    nullable: true,
    description: 'The top-up that owns the address, or the order that x402 paid for.',
  }),
  units: t.exposeString('units', { description: 'The amount in the smallest unit of the coin.' }),
  status: t.expose('status', { type: PaymentStatus }),
  height: t.exposeInt('height', { nullable: true, description: 'The height of its block.' }),
  confirmations: t.exposeInt('confirmations'),
  creditedUsd: t.expose('creditedMicros', {
    type: 'Usd',
    description: 'Its value when the service credited it, or put it into suspense.',
  }),
  seenAt: t.expose('seenAt', { type: 'DateTime' }),
  creditedAt: t.expose('creditedAt', { type: 'DateTime', nullable: true }),
  finalAt: t.expose('finalAt', { type: 'DateTime', nullable: true }),
  missingSince: t.expose('missingSince', {
    type: 'DateTime',
    nullable: true,
    description:
      'When the wallet or processor stopped reporting the credited payment, or you wrote off one that its chain had removed.',
  }),
  returnTxId: t.exposeString('returnTxId', { nullable: true, description: 'The transaction that sent it back.' }),
}));
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
  offered: t.exposeBoolean('offered', { description: 'Whether it is switched on for new top-ups.' }),
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
    description: 'The payments of all accounts, newest first. The operator decides about UNMATCHED and REVERSED ones.',
    args: {
      ...pageArgs(),
      status: t.arg({ type: PaymentStatus, description: 'Only payments in this state.' }),
      orderNumber: t.arg({ type: 'ID', description: 'Only payments of this top-up or server.' }),
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

const SEEN = {
  type: PaymentStatus,
  description: 'The state that you saw. The service refuses the decision in another one.',
} as const;
const REASON = { type: 'Line', required: true, description: 'The reason, kept with the event.' } as const;

builder.mutationFields((t) => ({
  assignPayment: t.field({
    type: PaymentType,
    scope: 'operator',
    right: 'billing',
    description: 'Assigns an unmatched payment to an account, if its chain still has it.',
    args: {
      id: t.arg({ type: 'ID', required: true, description: 'The id of an unmatched payment.' }),
      accountId: t.arg({
        type: 'ID',
        description: 'The id of the account. Absent: the one that owns the address. Required for a payment by x402.',
      }),
      status: t.arg(SEEN),
      reason: t.arg(REASON),
    },
    resolve: (_, { id, ...given }, context) => assign(context, id, given),
  }),
  writeOffPayment: t.field({
    type: PaymentType,
    scope: 'operator',
    right: 'billing',
    description:
      'Writes off a reversed or unmatched payment, or one in the balance that its gateway reports no more. Its account then owes it. For another FINAL one, name that status. If the chain mines a reversed one again, the service credits it. A removed one that was unmatched is unmatched again. One by x402 must be final, or gone for good.',
    args: {
      id: t.arg({ type: 'ID', required: true, description: 'The id of the payment.' }),
      status: t.arg(SEEN),
      reason: t.arg(REASON),
    },
    resolve: (_, { id, reason, status }, context) => writeOff(context, id, reason, status),
  }),
  returnPayment: t.field({
    type: PaymentType,
    scope: 'operator',
    right: 'billing',
    description:
      'Keeps that you sent an unmatched payment back that its chain cannot remove any more. The service sends nothing.',
    args: {
      id: t.arg({ type: 'ID', required: true, description: 'The id of an unmatched payment.' }),
      txId: t.arg({ type: 'Line', required: true, description: 'The transaction that sent the coins back.' }),
      status: t.arg(SEEN),
      reason: t.arg(REASON),
    },
    resolve: (_, { id, txId: returnTxId, ...given }, context) => giveBack(context, id, { ...given, returnTxId }),
  }),
  creditTransaction: t.field({
    type: [PaymentType],
    scope: 'operator',
    right: 'billing',
    description:
      'Reads a transaction from its chain. Its payments to addresses of top-ups are then settled like all others.',
    args: {
      network: t.arg({ type: 'Line', required: true, description: 'The network of a gateway, such as base.' }),
      txId: t.arg({ type: 'Line', required: true, description: 'The transaction.' }),
      accountId: t.arg({
        type: 'ID',
        description: 'The account of an address that was given out after the backup that you have restored.',
      }),
      reason: t.arg(REASON),
    },
    resolve: (_, given, context) => creditTransaction(context, given),
  }),
}));
