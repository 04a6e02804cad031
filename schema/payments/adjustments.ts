/** What the operator adds to balances by hand, and what each day has brought. */
import {
  type Adjusted,
  adjustBalance,
  type DailyTotal,
  findDailyTotals,
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
