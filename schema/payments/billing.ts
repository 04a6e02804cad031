/** Coins, bonus tiers and top-ups. */
import { microsFromUsd } from '../../entities/money.ts';
import type { TopUp } from '../../entities/payments/top-up.ts';
import {
  cancelTopUp,
  createTopUp,
  findTopUp,
  listTopUps,
  TOP_UP_MAX_USD,
  TOP_UP_MIN_USD,
  TOP_UP_STATUSES,
} from '../../resolvers/payments/billing.ts';
import { type CoinView, listCoins, updateCoin } from '../../resolvers/payments/coins.ts';
import { watchTopUps } from '../../resolvers/subscriptions.ts';
import { builder, enumType, inputType, objectType } from '../builder.ts';
import { listOf, madeArgs, pageArgs, pageOf } from '../pages.ts';
import { paymentArgs } from './x402.ts';

const CoinType = objectType<CoinView>('Coin', 'A coin that the service accepts.', (t) => ({
  code: t.exposeString('code', { description: 'The code to top up with.' }),
  name: t.exposeString('name', { description: 'The name of the coin.' }),
  network: t.exposeString('network', { description: 'The network that carries the coin.' }),
  decimals: t.exposeInt('decimals', { description: 'The digits after the point that the coin has.' }),
  confirmationsRequired: t.exposeInt('confirmationsRequired', {
    description: 'The confirmations after which the service credits a payment.',
  }),
  rateUsd: t.expose('rateMicros', { type: 'Usd', nullable: true, description: 'The price of one coin.' }),
  minUsd: t.field({
    type: 'Usd',
    description: 'The smallest top-up.',
    resolve: () => microsFromUsd(TOP_UP_MIN_USD),
  }),
  maxUsd: t.field({
    type: 'Usd',
    description: 'The largest top-up.',
    resolve: () => microsFromUsd(TOP_UP_MAX_USD),
  }),
  available: t.exposeBoolean('available', { description: 'Whether new top-ups can use it at the moment.' }),
  x402: t.exposeBoolean('x402', { description: 'Whether it pays for x402 requests.' }),
}));
const TopUpStatus = enumType(
  'TopUpStatus',
  'CONFIRMED is final: the service has credited the balance.',
  TOP_UP_STATUSES,
);
export const PaymentMode = enumType('PaymentMode', 'The way of payment.', ['CRYPTO', 'X402']);
const PaymentException = enumType('PaymentException', 'The deviation of the payment from the quote.', [
  'UNDERPAID',
  'OVERPAID',
  'LATE',
]);

const TopUpType = objectType<TopUp>('TopUp', 'A payment into the balance.', (t) => ({
  orderNumber: t.exposeID('orderNumber', { description: 'Identifies the top-up.' }),
  status: t.expose('status', {
    type: TopUpStatus,
    description:
      'pending: unpaid. confirming: paid, with too few confirmations. confirmed: in the balance. expired, cancelled: late payments count.',
  }),
  mode: t.expose('mode', { type: PaymentMode, description: 'By coins to an address, or by x402.' }),
  amountUsd: t.expose('amountMicros', { type: 'Usd', description: 'The amount that its owner asked for.' }),
  bonusUsd: t.expose('bonusMicros', { type: 'Usd', description: 'The bonus in addition to the amount.' }),
  crypto: t.exposeString('crypto', { description: 'The code of the coin.' }),
  network: t.exposeString('network', { description: 'The network that carries the payment.' }),
  amountCrypto: t.exposeString('amountCrypto', { description: 'The amount to pay, in the coin, as a decimal string.' }),
  rateUsd: t.expose('rateMicros', { type: 'Usd', description: 'The price of one coin, locked until expires_at.' }),
  walletAddress: t.exposeString('walletAddress', {
    nullable: true,
    description: 'The address to pay to. It belongs to this top-up only.',
  }),
  paymentUri: t.exposeString('paymentUri', {
    nullable: true,
    description: 'The payment for wallets: BIP 21, EIP-681 or monero:.',
  }),
  receivedCrypto: t.exposeString('receivedCrypto', {
    description: 'The received amount, in the coin, as a decimal string.',
  }),
  confirmations: t.exposeInt('confirmations', { description: 'The fewest of a payment that waits.' }),
  confirmationsRequired: t.exposeInt('confirmationsRequired', {
    description: 'A payment with so many is in the balance.',
  }),
  txIds: t.exposeStringList('txIds', { description: 'The transactions of its first hundred payments.' }),
  paymentException: t.expose('paymentException', {
    type: PaymentException,
    nullable: true,
    description: 'Null: the payment came in time, and in full.',
  }),
  creditedUsd: t.expose('creditedMicros', {
    type: 'Usd',
    description: 'The credited amount, including the bonus, less removed payments.',
  }),
  createdAt: t.expose('createdAt', { type: 'DateTime' }),
  expiresAt: t.expose('expiresAt', { type: 'DateTime', nullable: true, description: 'The end of the quoted rate.' }),
  confirmedAt: t.expose('confirmedAt', {
    type: 'DateTime',
    nullable: true,
    description: 'When the money came to the balance.',
  }),
}));
const TopUpPage = pageOf('TopUp', TopUpType);
const CoinPage = pageOf('Coin', CoinType);

const CreateTopUpInput = inputType('CreateTopUpInput', (t) => ({
  amountUsd: t.field({ type: 'TopUpAmount', required: true, description: 'US dollars, 30 to 10,000.' }),
  crypto: t.field({
    type: 'CoinCode',
    description:
      'The code of an accepted coin of {ListCoins}, in upper or lower case, else unknown_coin. Required unless x402 pays.',
  }),
}));

builder.queryFields((t) => ({
  coins: t.field({
    type: CoinPage,
    scope: 'public',
    description: 'The coins that the service accepts.',
    resolve: async (_, __, context) => listOf(await listCoins(context)),
  }),
  topUp: t.field({
    type: TopUpType,
    scope: 'read',
    description: 'One top-up.',
    args: { orderNumber: t.arg({ type: 'ID', required: true, description: 'The order number of the top-up.' }) },
    resolve: (_, { orderNumber }, context) => findTopUp(context, orderNumber),
  }),
  topUps: t.field({
    type: TopUpPage,
    scope: 'read',
    description: 'The top-ups of the account, newest first.',
    args: {
      ...pageArgs(),
      ...madeArgs(),
      status: t.arg({ type: [TopUpStatus], description: 'Only top-ups in these states.' }),
    },
    resolve: (_, { limit, cursor, ...filter }, context) => listTopUps(context, { limit, cursor }, filter),
  }),
}));

builder.mutationFields((t) => ({
  updateCoin: t.field({
    type: CoinType,
    scope: 'operator',
    right: 'billing',
    description: 'Switches a coin off or on for new top-ups. Open top-ups continue.',
    args: {
      code: t.arg({ type: 'CoinCode', required: true, description: 'The code of the coin.' }),
      available: t.arg.boolean({ required: true, description: 'Whether new top-ups can use it.' }),
      seen: t.arg.boolean({
        description: 'Whether you saw it switched on. The service refuses the change of another switch.',
      }),
    },
    resolve: (_, { code, available, seen }, context) => updateCoin(context, code, available, seen),
  }),
  createTopup: t.field({
    type: TopUpType,
    scope: 'billing',
    errors: ['amount_too_low', 'amount_too_high', 'unknown_coin', 'coin_unavailable', 'topup_limit_reached'],
    description:
      'Opens a top-up. Pay its amount to its address. The service credits the balance when the payment is confirmed.',
    args: { input: t.arg({ type: CreateTopUpInput, required: true }), ...paymentArgs() },
    resolve: (_, { input, ...payment }, context) => createTopUp(context, input, payment),
  }),
  cancelTopup: t.field({
    type: TopUpType,
    scope: 'billing',
    errors: ['topup_not_cancellable'],
    whileSuspended: true,
    description: 'Cancels an unpaid top-up. The service still credits later payments.',
    args: { orderNumber: t.arg({ type: 'ID', required: true, description: 'The order number of the top-up.' }) },
    resolve: (_, { orderNumber }, context) => cancelTopUp(context, orderNumber),
  }),
}));

builder.subscriptionFields((t) => ({
  topUpUpdated: t.field({
    type: TopUpType,
    scope: 'read',
    description: 'One top-up, or all open ones: the present state first, then each change.',
    args: { orderNumber: t.arg({ type: 'ID', description: 'The order number of a top-up. Absent: all open ones.' }) },
    subscribe: (_, { orderNumber }, context) => watchTopUps(context, orderNumber),
    resolve: (topUp: TopUp) => topUp,
  }),
}));
