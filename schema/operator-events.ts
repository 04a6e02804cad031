/** The events of the operator: a list, and a subscription. */
import type { OperatorEvent } from '../entities/history/event.ts';
import { listOperatorEvents, noteBackup } from '../resolvers/operator-events.ts';
import { watchOperatorEvents } from '../resolvers/subscriptions.ts';
import { builder, objectType } from './builder.ts';
import { pageArgs, pageOf } from './pages.ts';

export const OperatorEventType = objectType<OperatorEvent>(
  'OperatorEvent',
  'A change that concerns the operator, such as a finding or an unmatched payment. Or a change of an account.',
  (t) => ({
    id: t.exposeID('id', { description: 'A subscription may send an event twice, with the same id.' }),
    type: t.exposeString('type', { description: 'Such as finding.reported.' }),
    subject: t.exposeString('subject', { description: 'The id, order number or name of the changed thing.' }),
    data: t.expose('data', { type: 'JSON', description: 'The details, which differ by type.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
  }),
);
const OperatorEventPage = pageOf('OperatorEvent', OperatorEventType);

builder.queryFields((t) => ({
  operatorEvents: t.field({
    type: OperatorEventPage,
    scope: 'operator',
    description: 'The events of the operator, newest first.',
    args: {
      ...pageArgs(),
      type: t.arg({ type: 'AuditAction', description: 'Only events of this type.' }),
      since: t.arg({ type: 'DateTime', description: 'Only events of this time or later.' }),
    },
    resolve: (_, { type, since, ...page }, context) => listOperatorEvents(context, page, { type, since }),
  }),
}));

builder.mutationFields((t) => ({
  noteBackup: t.field({
    type: OperatorEventType,
    scope: 'operator',
    right: 'support',
    description: 'Notes that you made a backup of the database just now. Without a young one, a matter is open.',
    resolve: (_, __, context) => noteBackup(context),
  }),
}));

builder.subscriptionFields((t) => ({
  operatorEvent: t.field({
    type: OperatorEventType,
    scope: 'operator',
    description: 'The newest event of the operator, and each later one.',
    subscribe: (_, __, context) => watchOperatorEvents(context),
    resolve: (event: OperatorEvent) => event,
  }),
}));
