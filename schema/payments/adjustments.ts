/** The operator's view of the money: adjustments by hand, the totals of each day, and the proof of the books. */
import {
  type Adjusted,
  adjustBalance,
  type DailyTotal,
  findBooks,
  findDailyTotals,
  type Proof,
} from '../../resolvers/payments/adjustments.ts';
import { builder } from '../builder.ts';

const AdjustmentType = builder.objectRef<Adjusted>('Adjustment').implement({
  description: 'What was added to a balance, or taken from it, by hand.',
  fields: (t) => ({
    accountId: t.exposeID('accountId'),
    amountUsd: t.expose('amountMicros', { type: 'Usd', description: 'Negative: taken.' }),
    reason: t.exposeString('reason'),
    balanceUsd: t.expose('balanceMicros', { type: 'Usd', description: 'What the balance is now.' }),
  }),
});
const DailyTotalType = builder.objectRef<DailyTotal>('DailyTotal').implement({
  description: 'What the transfers of a kind sum up to on a day (UTC).',
  fields: (t) => ({
    day: t.expose('day', { type: 'DateTime', description: 'Its first moment.' }),
    kind: t.exposeString('kind', {
      description: 'topup, bonus, hold, capture, release, renewal, refund or adjustment.',
    }),
    transfers: t.exposeInt('transfers'),
    totalUsd: t.expose('micros', { type: 'Usd', description: 'Without a sign.' }),
  }),
});

builder.queryFields((t) => ({
  dailyTotals: t.field({
    type: [DailyTotalType],
    scope: 'operator',
    description: 'What each day has brought, by the kind of transfer; the latest day first.',
    args: {
      days: t.arg({ type: 'PageLimit', required: true, defaultValue: 30, description: 'How many, with today.' }),
    },
    resolve: (_, { days }, context) => findDailyTotals(context, days),
  }),
}));

builder.mutationFields((t) => ({
  adjustBalance: t.field({
    type: AdjustmentType,
    scope: 'operator',
    description: 'Adds to a balance, or takes from it what it has. The customer sees it in the usage, with the reason.',
    args: {
      accountId: t.arg({ type: 'ID', required: true, description: 'The id of an account.' }),
      amountUsd: t.arg({ type: 'Usd', required: true, description: 'Negative: taken.' }),
      reason: t.arg({ type: 'Line', required: true, description: 'What the customer is told.' }),
      key: t.arg({ type: 'Line', required: true, description: 'A name of yours: sent again, it changes nothing.' }),
    },
    resolve: (_, { amountUsd, ...given }, context) => adjustBalance(context, { ...given, amountMicros: amountUsd }),
  }),
}));

const LedgerTotal = builder.objectRef<Proof['totals'][number]>('LedgerTotal').implement({
  description: 'What a ledger account sums up to; those of customers together.',
  fields: (t) => ({ name: t.exposeString('name'), totalUsd: t.expose('micros', { type: 'Usd' }) }),
});
const BooksType = builder.objectRef<Proof>('Books').implement({
  description: 'The proof that the books balance.',
  fields: (t) => ({
    balanced: t.exposeBoolean('balanced', {
      description:
        'Whether every balance is the sum of its transfers, and the ledger bears out every payment, top-up and order.',
    }),
    transfers: t.exposeInt('transfers'),
    firstMismatch: t.string({
      nullable: true,
      description: 'The first row that is wrong: its table, its id, and what is wrong with it.',
      resolve: ({ firstFault }) => firstFault && `${firstFault.table} ${firstFault.row}: ${firstFault.detail}`,
    }),
    totals: t.expose('totals', { type: [LedgerTotal], description: 'They sum up to nothing.' }),
  }),
});
builder.queryFields((t) => ({
  books: t.field({
    type: BooksType,
    scope: 'operator',
    description: 'Proves that the books balance. Reads everything.',
    resolve: (_, __, context) => findBooks(context),
  }),
}));
