/** Money for the operator: adjustments, the totals of each day, and the proof of the books. */
import {
  type Adjusted,
  adjustBalance,
  type DailyTotal,
  findBooks,
  findDailyTotals,
  type Proof,
} from '../../resolvers/payments/adjustments.ts';
import { builder, objectType } from '../builder.ts';

const AdjustmentType = objectType<Adjusted>('Adjustment', 'A change of a balance by the operator.', (t) => ({
  accountId: t.exposeID('accountId'),
  amountUsd: t.expose('amountMicros', { type: 'Usd', description: 'Negative: taken from the balance.' }),
  reason: t.exposeString('reason'),
  balanceUsd: t.expose('balanceMicros', { type: 'Usd', description: 'The new balance.' }),
}));
const DailyTotalType = objectType<DailyTotal>(
  'DailyTotal',
  'The transfers of one kind on a day (UTC), as they changed the money of customers.',
  (t) => ({
    day: t.expose('day', { type: 'DateTime', description: 'The beginning of the day.' }),
    kind: t.exposeString('kind', {
      description: 'topup, bonus, hold, capture, release, renewal, refund or adjustment.',
    }),
    transfers: t.exposeInt('transfers'),
    creditedUsd: t.expose('creditedMicros', {
      type: 'Usd',
      description: 'The sum that accounts of customers received.',
    }),
    debitedUsd: t.expose('debitedMicros', { type: 'Usd', description: 'The sum that accounts of customers gave.' }),
  }),
);

builder.queryFields((t) => ({
  dailyTotals: t.field({
    type: [DailyTotalType],
    scope: 'operator',
    description: 'The totals of each day by the kind of transfer, the latest day first.',
    args: {
      days: t.arg({
        type: 'PageLimit',
        required: true,
        defaultValue: 30,
        description: 'The number of days, including today.',
      }),
    },
    resolve: (_, { days }, context) => findDailyTotals(context, days),
  }),
}));

builder.mutationFields((t) => ({
  adjustBalance: t.field({
    type: AdjustmentType,
    scope: 'operator',
    right: 'billing',
    description: 'Adds to a balance, or takes from it. The customer sees it in the usage, with the reason.',
    args: {
      accountId: t.arg({ type: 'ID', required: true, description: 'The id of an account.' }),
      amountUsd: t.arg({ type: 'Usd', required: true, description: 'Negative: taken from the balance.' }),
      reason: t.arg({ type: 'Line', required: true, description: 'The reason that the customer sees.' }),
      key: t.arg({
        type: 'Line',
        required: true,
        description: 'Your own name for the adjustment. Sending it again changes nothing.',
      }),
    },
    resolve: (_, { amountUsd, ...given }, context) => adjustBalance(context, { ...given, amountMicros: amountUsd }),
  }),
}));

const LedgerTotal = objectType<Proof['totals'][number]>(
  'LedgerTotal',
  'The sum of a ledger account. Those of customers are added up.',
  (t) => ({ name: t.exposeString('name'), totalUsd: t.expose('micros', { type: 'Usd' }) }),
);
const BooksType = objectType<Proof>('Books', 'The proof that the books balance.', (t) => ({
  balanced: t.exposeBoolean('balanced', {
    description:
      'Whether every balance is the sum of its transfers, and every check of the books finds nothing. `npm run verify` makes the same checks.',
  }),
  transfers: t.exposeInt('transfers'),
  firstMismatch: t.string({
    nullable: true,
    description: 'The first wrong row: its table, its id, and the fault.',
    resolve: ({ firstFault }) => firstFault && `${firstFault.table} ${firstFault.row}: ${firstFault.detail}`,
  }),
  totals: t.expose('totals', {
    type: [LedgerTotal],
    description: 'The sums of all ledger accounts. Together they are 0.',
  }),
}));
builder.queryFields((t) => ({
  books: t.field({
    type: BooksType,
    scope: 'operator',
    description: 'Proves that the books balance. It reads everything.',
    resolve: (_, __, context) => findBooks(context),
  }),
}));
