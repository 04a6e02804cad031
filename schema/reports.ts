/** Reports for the operator: the sales by tier and region, and the income by coin. */
import { type Income, type Sales, sumIncome, sumSales } from '../resolvers/reports.ts';
import { builder, objectType } from './builder.ts';

const SalesType = objectType<Sales>('Sales', 'The sales of one tier in one region.', (t) => ({
  region: t.exposeString('region'),
  serviceCode: t.exposeString('serviceCode', { description: 'The tier.' }),
  servers: t.exposeInt('servers', { description: 'The delivered servers now, without suspended ones.' }),
  monthlyUsd: t.expose('monthlyMicros', { type: 'Usd', description: 'The sum of their prices of a month (MRR).' }),
  averageMonthUsd: t.field({
    type: 'Usd',
    nullable: true,
    description: 'The average price of a month. Null without servers.',
    resolve: ({ monthlyMicros, servers }) => (servers ? monthlyMicros / BigInt(servers) : null),
  }),
  ordered: t.exposeInt('ordered', { description: 'The delivered orders of the range.' }),
  deleted: t.exposeInt('deleted', { description: 'The servers that were deleted in the range.' }),
  churnPercent: t.float({
    nullable: true,
    description: 'The part of the servers at the beginning of the range that were deleted. Null if there were none.',
    resolve: ({ lost, before }) => (before ? Math.round((1000 * lost) / before) / 10 : null),
  }),
  earnedUsd: t.expose('earnedMicros', { type: 'Usd', description: 'The money that servers earned in the range.' }),
  refundedUsd: t.expose('refundedMicros', {
    type: 'Usd',
    description: 'The part of earned money that went back in the range.',
  }),
}));

const IncomeType = objectType<Income>('Income', 'The credited payments in one coin.', (t) => ({
  coin: t.exposeString('coin'),
  payments: t.exposeInt('payments'),
  creditedUsd: t.expose('creditedMicros', {
    type: 'Usd',
    description: 'Their value when they were credited, without bonuses.',
  }),
  paidOutUsd: t.expose('paidOutMicros', { type: 'Usd', description: 'The part that payouts sent back until now.' }),
}));

builder.queryFields((t) => {
  const days = {
    from: t.arg({ type: 'Date', description: 'The first day, in UTC. Default: the first day of the month.' }),
    to: t.arg({ type: 'Date', description: 'The last day, in UTC. Default: today.' }),
  };
  return {
    sales: t.field({
      type: [SalesType],
      scope: 'operator',
      description: 'The sales by tier and region in a range of days, at most 12 months. It reads all servers.',
      args: days,
      resolve: (_, range, context) => sumSales(context, range),
    }),
    income: t.field({
      type: [IncomeType],
      scope: 'operator',
      description: 'The credited payments by coin in a range of days, at most 12 months. It reads all payments.',
      args: days,
      resolve: (_, range, context) => sumIncome(context, range),
    }),
  };
});
