/** Payouts, sweeps, fees and closed months, for the operator. */
import type { ClosedMonth } from '../../entities/payments/closed-month.ts';
import type { Movement } from '../../entities/payments/movement.ts';
import type { Payout } from '../../entities/payments/payout.ts';
import {
  cancel,
  closeMonth,
  findPayouts,
  finish,
  move,
  PAYOUT_STATUSES,
  refundInCoin,
  returnInCoin,
} from '../../resolvers/payments/payouts.ts';
import { builder, enumType, objectType } from '../builder.ts';
import { pageArgs, pageOf } from '../pages.ts';

const PayoutStatus = enumType(
  'PayoutStatus',
  'REQUESTED: its money is reserved. EXPORTED: in a list to sign. BROADCAST: its transaction was sent. FINAL: the chain cannot remove it. CANCELLED: its money is back.',
  PAYOUT_STATUSES,
);
const PayoutType = objectType<Payout>('Payout', 'Coins that the operator sends to a customer.', (t) => ({
  id: t.exposeID('id'),
  key: t.exposeString('key', { description: 'Your own name for it.' }),
  accountId: t.exposeID('accountId'),
  paymentId: t.exposeID('paymentId', {
    nullable: true,
    description: 'The payment that it sends back. Null: the money is from the balance.',
  }),
  status: t.expose('status', { type: PayoutStatus }),
  source: t.exposeString('source', { description: 'The ledger account that holds its coins.' }),
  network: t.exposeString('network'),
  coin: t.exposeString('coin'),
  address: t.exposeString('address'),
  isSigned: t.boolean({
    description: 'Whether the address signed for it. Otherwise the operator entered the address.',
    resolve: ({ signature }) => signature !== null,
  }),
  units: t.exposeString('units', { description: 'The amount in the smallest unit of the coin.' }),
  amountUsd: t.expose('amountMicros', { type: 'Usd' }),
  txId: t.exposeString('txId', { nullable: true }),
  reason: t.exposeString('reason'),
  createdAt: t.expose('createdAt', { type: 'DateTime' }),
}));
const MovementType = objectType<Movement>('Movement', 'Coins that the operator moved.', (t) => ({
  id: t.exposeID('id'),
  source: t.exposeString('source', { description: 'The ledger account that the coins left.' }),
  target: t.exposeString('target', { description: 'The ledger account that has them.' }),
  coin: t.exposeString('coin'),
  units: t.exposeString('units', { description: 'The amount in the smallest unit of the coin.' }),
  amountUsd: t.expose('amountMicros', { type: 'Usd', description: 'The average cost of these coins.' }),
  txId: t.exposeString('txId'),
}));
const ClosedMonthType = objectType<ClosedMonth>('ClosedMonth', 'A month whose totals are kept.', (t) => ({
  month: t.exposeString('month'),
  transfers: t.exposeInt('transfers'),
  closedAt: t.expose('closedAt', { type: 'DateTime' }),
}));

const PayoutPage = pageOf('Payout', PayoutType);
builder.queryFields((t) => ({
  payouts: t.field({
    type: PayoutPage,
    scope: 'operator',
    description: 'The payouts of all accounts, newest first.',
    args: { ...pageArgs(), status: t.arg({ type: PayoutStatus, description: 'Only payouts in this state.' }) },
    resolve: (_, { status, ...page }, context) => findPayouts(context, page, status),
  }),
}));

const required = <T extends string>(type: T, description: string) => ({ type, required: true, description }) as const;
const REASON = required('Line', 'The reason, kept with the event.');
const requestArgs = () =>
  builder.args((t) => ({
    key: t.field(required('Line', 'Your own name for the payout. Sending it again changes nothing.')),
    address: t.field(required('Line', 'The address that gets the coins.')),
    signature: t.field({
      type: 'Line',
      description:
        'The signature of that address (EIP-191) of the sentence "Pay the coins of the account ACCOUNT to the address ADDRESS on the network NETWORK."',
    }),
    source: t.field({
      type: 'Line',
      description: 'The ledger account of the coins. Default: the gateway of their network.',
    }),
    reason: t.field(REASON),
  }));
builder.mutationFields((t) => ({
  requestPayout: t.field({
    type: PayoutType,
    scope: 'operator',
    right: 'billing',
    description: 'Reserves money of a balance to send it in coins, at the present rate. The service sends nothing.',
    args: {
      accountId: t.arg(required('ID', 'The id of an account.')),
      coin: t.arg(required('CoinCode', 'The code of the coin.')),
      amountUsd: t.arg(required('Usd', 'At most what is available and final.')),
      ...requestArgs(),
    },
    resolve: (_, given, context) => refundInCoin(context, given),
  }),
  requestReturn: t.field({
    type: PayoutType,
    scope: 'operator',
    right: 'billing',
    description:
      'Requests a payout that sends an unmatched payment back that its chain cannot remove any more. The service sends nothing.',
    args: {
      paymentId: t.arg(required('ID', 'The id of an unmatched payment.')),
      ...requestArgs(),
    },
    resolve: (_, given, context) => returnInCoin(context, given),
  }),
  cancelPayout: t.field({
    type: PayoutType,
    scope: 'operator',
    right: 'billing',
    description: 'Gives back the money of a payout. Be sure that you will not send its transaction.',
    args: { id: t.arg(required('ID', 'The id of a payout.')), reason: t.arg(REASON) },
    resolve: (_, { id, reason }, context) => cancel(context, id, reason),
  }),
  finishPayout: t.field({
    type: PayoutType,
    scope: 'operator',
    right: 'billing',
    description: 'Takes your word that the chain cannot remove the transaction of a payout.',
    args: { id: t.arg(required('ID', 'The id of a payout.')) },
    resolve: (_, { id }, context) => finish(context, id),
  }),
  recordMovement: t.field({
    type: MovementType,
    scope: 'operator',
    right: 'billing',
    description: 'Records a sweep into a wallet, or the fee of a network. Recording it again changes nothing.',
    args: {
      source: t.arg(required('Line', 'The ledger account that the coins left, such as gateway:bitcoin.')),
      target: t.arg(required('Line', 'The ledger account that has them, such as wallet:bitcoin; or fees.')),
      coin: t.arg(required('CoinCode', 'The code of the coin.')),
      units: t.arg(required('Line', 'The amount in the smallest unit of the coin.')),
      txId: t.arg(required('Line', 'The transaction.')),
      amountUsd: t.arg({ type: 'Usd', description: 'The cost of the coins, where the books do not know it.' }),
    },
    resolve: (_, { amountUsd, ...given }, context) => move(context, { ...given, amountMicros: amountUsd ?? null }),
  }),
  closeMonth: t.field({
    type: ClosedMonthType,
    scope: 'operator',
    right: 'billing',
    description: 'Keeps the totals of a month that is over. `npm run verify` then compares them.',
    args: { month: t.arg(required('Line', 'Such as 2026-10, in UTC.')) },
    resolve: (_, { month }, context) => closeMonth(context, month),
  }),
}));
