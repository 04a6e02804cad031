/** Usage: the changes of the balance. */
import type { UsageItem } from '../../entities/accounts/usage.ts';
import { findUsage, type Usage } from '../../resolvers/accounts/usage.ts';
import { builder, objectType } from '../builder.ts';
import { pageArgs } from '../pages.ts';

const UsageItemType = objectType<UsageItem>('UsageItem', 'One change of the balance.', (t) => ({
  kind: t.exposeString('kind', {
    description: 'order, renewal, traffic, refund, topup, bonus or adjustment. A failed order gets a refund.',
  }),
  orderNumber: t.exposeString('orderNumber', {
    nullable: true,
    description: 'The order number of the server or top-up.',
  }),
  serviceCode: t.exposeString('serviceCode', { nullable: true, description: 'The tier of the server.' }),
  description: t.exposeString('description', { description: 'The change, in words.' }),
  from: t.expose('from', {
    type: 'DateTime',
    description: 'The beginning of the paid time; without a paid time, the moment of the change.',
  }),
  to: t.expose('to', { type: 'DateTime', description: 'The end of the paid time.' }),
  hours: t.exposeInt('hours', { nullable: true, description: 'The number of paid hours.' }),
  amountUsd: t.expose('amountMicros', { type: 'Usd', description: 'The amount; negative if it left the balance.' }),
}));

const UsageType = objectType<Usage>('Usage', 'The changes of the balance in a range of days, newest first.', (t) => ({
  from: t.expose('from', { type: 'DateTime', description: 'The beginning of the range.' }),
  to: t.expose('to', { type: 'DateTime', description: 'The end of the range: the last millisecond of a day.' }),
  totalUsd: t.expose('totalMicros', { type: 'Usd', description: 'The sum of the whole range, not only of the page.' }),
  spentUsd: t.expose('spentMicros', {
    type: 'Usd',
    description: 'The cost of the range: orders, renewals and traffic, less refunds. Negative if refunds were more.',
  }),
  toppedUpUsd: t.expose('toppedUpMicros', { type: 'Usd', description: 'The top-ups and bonuses of the range.' }),
  adjustedUsd: t.expose('adjustedMicros', {
    type: 'Usd',
    description: 'The adjustments of the range. total_usd is topped_up_usd - spent_usd + adjusted_usd.',
  }),
  data: t.expose('data', { type: [UsageItemType], description: 'The changes of the page.' }),
  nextCursor: t.exposeString('nextCursor', {
    nullable: true,
    description: 'Send it as cursor to read the next page; null on the last page.',
  }),
  hasMore: t.boolean({ description: 'Whether there is a next page.', resolve: (page) => page.nextCursor !== null }),
}));

builder.queryFields((t) => ({
  usage: t.field({
    type: UsageType,
    scope: 'read',
    description: 'The changes of the balance in a range of days, at most 12 months.',
    args: {
      ...pageArgs(),
      from: t.arg({ type: 'Date', description: 'The first day, in UTC. Default: the first day of the month.' }),
      to: t.arg({ type: 'Date', description: 'The last day, in UTC. Default: today.' }),
    },
    resolve: (_, { from, to, ...page }, context) => findUsage(context, page, { from, to }),
  }),
}));
