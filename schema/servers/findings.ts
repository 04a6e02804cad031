/** What watching the engines has found, for the operator. */
import type { CircuitBreaker, Finding } from '../../entities/servers/finding.ts';
import { closeBreaker, FINDING_KINDS, listBreakers, listFindings } from '../../resolvers/servers/findings.ts';
import { builder } from '../builder.ts';

const FindingKind = builder.enumType('FindingKind', {
  description:
    'Orphan: a machine that no server has. Lost: a server whose machine is absent. Power: one that is on and should be off, or the other way round. Stuck: one that was given up and cannot be removed.',
  values: FINDING_KINDS,
});
const FindingType = builder.objectRef<Finding>('Finding').implement({
  description: 'Where an engine and the database say different things. Nothing is ever deleted for it.',
  fields: (t) => ({
    id: t.exposeID('id'),
    kind: t.expose('kind', { type: FindingKind }),
    engine: t.exposeString('driver', { description: 'The driver that found it.' }),
    orderNumber: t.exposeString('orderNumber'),
    generation: t.exposeInt('generation', { description: 'Which machine of the order.' }),
    detail: t.exposeString('detail'),
    firstSeenAt: t.expose('firstSeenAt', { type: 'DateTime' }),
    lastSeenAt: t.expose('lastSeenAt', { type: 'DateTime' }),
  }),
});
const CircuitBreakerType = builder.objectRef<CircuitBreaker>('Brake').implement({
  description: 'An engine of which no machine is destroyed at the moment, because many vanished at once.',
  fields: (t) => ({
    engine: t.exposeString('driver'),
    reason: t.exposeString('reason'),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
  }),
});

builder.queryFields((t) => ({
  findings: t.field({
    type: [FindingType],
    scope: 'operator',
    description: 'What is so now, the newest first.',
    args: { limit: t.arg({ type: 'PageLimit', required: true, defaultValue: 50, description: 'How many.' }) },
    resolve: (_, { limit }, context) => listFindings(context, limit),
  }),
  brakes: t.field({
    type: [CircuitBreakerType],
    scope: 'operator',
    description: 'Engines of which nothing is destroyed.',
    resolve: (_, __, context) => listBreakers(context),
  }),
}));

builder.mutationFields((t) => ({
  releaseBrake: t.field({
    type: CircuitBreakerType,
    scope: 'operator',
    description: 'Lets the machines of an engine be destroyed again.',
    args: { engine: t.arg({ type: 'Line', required: true, description: 'As brakes names it.' }) },
    resolve: (_, { engine }, context) => closeBreaker(context, engine),
  }),
}));
