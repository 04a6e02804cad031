/** Usage: what changed the balance. */
import { findUsage, type Usage, type UsageItem } from '../../resolvers/accounts/usage.ts';
import { builder } from '../builder.ts';
import { pageArgs } from '../pages.ts';

const UsageItemType = builder.objectRef<UsageItem>('UsageItem').implement({
  description: 'One change of the balance.',
  fields: (t) => ({
    kind: t.exposeString('kind', {
      description:
        'order, renewal, refund, topup, bonus or adjustment. What was ordered and not delivered is refunded.',
    }),
    orderNumber: t.exposeString('orderNumber', { nullable: true, description: 'Of the server or the top-up.' }),
    serviceCode: t.exposeString('serviceCode', { nullable: true }),
    description: t.exposeString('description'),
    from: t.expose('from', {
      type: 'DateTime',
      description: 'Where the time begins that it pays for; where it pays for none, when it happened.',
    }),
    to: t.expose('to', { type: 'DateTime', description: 'Where that time ends.' }),
    hours: t.exposeInt('hours', { nullable: true, description: 'How many hours it pays for.' }),
    amountUsd: t.expose('amountMicros', { type: 'Usd', description: 'Negative if it was taken from the balance.' }),
  }),
});

const UsageType = builder.objectRef<Usage>('Usage').implement({
  description: 'What changed the balance in a range of days, newest first.',
  fields: (t) => ({
    from: t.expose('from', { type: 'DateTime', description: 'Where the range begins.' }),
    to: t.expose('to', { type: 'DateTime', description: 'Where it ends: the last millisecond of a day.' }),
    totalUsd: t.expose('totalMicros', {
      type: 'Usd',
      description: 'The sum over the whole range, not the page alone.',
    }),
    data: t.expose('data', { type: [UsageItemType] }),
    nextCursor: t.exposeString('nextCursor', {
      nullable: true,
      description: 'Pass it as cursor to read the next page; null on the last.',
    }),
    hasMore: t.boolean({ description: 'Whether there is a next page.', resolve: (page) => page.nextCursor !== null }),
  }),
});

builder.queryFields((t) => ({
  usage: t.field({
    type: UsageType,
    scope: 'read',
    description: 'What changed the balance in a range of days, at most 12 months.',
    args: {
      ...pageArgs(),
      from: t.arg({ type: 'Date', description: 'The first day, in UTC. Default: the first of the month.' }),
      to: t.arg({ type: 'Date', description: 'The last day, in UTC. Default: today.' }),
    },
    resolve: (_, { from, to, ...page }, context) => findUsage(context, page, { from, to }),
  }),
}));
