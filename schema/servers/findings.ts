/** Findings of the observers and open circuit breakers, for the operator. */
import type { CircuitBreaker, Finding } from '../../entities/servers/finding.ts';
import type { Trouble } from '../../entities/servers/operator-lists.ts';
import {
  closeBreaker,
  FINDING_KINDS,
  listBreakers,
  listFindings,
  listTroubles,
} from '../../resolvers/servers/findings.ts';
import { builder, enumType, objectType } from '../builder.ts';
import { ServerKind, ServerStatus } from './servers.ts';

const FindingKind = enumType(
  'FindingKind',
  'Orphan: a machine without a server. Lost: a server whose machine is absent. Power, size, image: a machine that differs from its server in that. Misplaced: a machine on another host than its claim, because that host is unknown or has no room. Capacity: a host that the operator sells as larger than it is. Or a host without room for a rebuild beside the old machine. Incomplete: a machine that was never finished. Stuck: a machine that was given up and cannot be removed. Traffic: a machine that sends very many packets, or hides its network card.',
  FINDING_KINDS,
);
const FindingType = objectType<Finding>(
  'Finding',
  'A difference between an engine and the database. A finding never deletes a machine.',
  (t) => ({
    id: t.exposeID('id'),
    kind: t.expose('kind', { type: FindingKind }),
    engine: t.exposeString('driver', { description: 'The name of the engine.' }),
    orderNumber: t.exposeString('orderNumber', {
      description: 'The order of the machine. Capacity: the name of the host.',
    }),
    generation: t.exposeInt('generation', { description: 'The number of the machine of this order. Capacity: 0.' }),
    detail: t.exposeString('detail'),
    firstSeenAt: t.expose('firstSeenAt', { type: 'DateTime' }),
    lastSeenAt: t.expose('lastSeenAt', { type: 'DateTime' }),
  }),
);
const CircuitBreakerType = objectType<CircuitBreaker>(
  'Brake',
  'An open circuit breaker: many machines of the engine vanished at once, so workers destroy none of it.',
  (t) => ({
    engine: t.exposeString('driver'),
    reason: t.exposeString('reason'),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
  }),
);

const TroubleType = objectType<Trouble>('Trouble', 'A server, and the last words of its engine about it.', (t) => ({
  orderNumber: t.exposeString('orderNumber'),
  kind: t.expose('kind', { type: ServerKind }),
  status: t.expose('status', { type: ServerStatus, description: 'The status of the server now.' }),
  region: t.exposeString('region'),
  host: t.exposeString('host', { nullable: true }),
  trouble: t.exposeString('trouble', { description: 'The message of the engine about the last call that failed.' }),
  troubleAt: t.expose('troubleAt', { type: 'DateTime', description: 'When that call failed.' }),
}));

builder.queryFields((t) => ({
  troubles: t.field({
    type: [TroubleType],
    scope: 'operator',
    description: 'The servers for which an engine has failed, the last failure first. Their tasks may have ended.',
    args: { limit: t.arg({ type: 'PageLimit', required: true, defaultValue: 50, description: 'The most servers.' }) },
    resolve: (_, { limit }, context) => listTroubles(context, limit),
  }),
  findings: t.field({
    type: [FindingType],
    scope: 'operator',
    description: 'The open findings, the newest first.',
    args: { limit: t.arg({ type: 'PageLimit', required: true, defaultValue: 50, description: 'How many.' }) },
    resolve: (_, { limit }, context) => listFindings(context, limit),
  }),
  brakes: t.field({
    type: [CircuitBreakerType],
    scope: 'operator',
    description: 'The open circuit breakers.',
    resolve: (_, __, context) => listBreakers(context),
  }),
}));

builder.mutationFields((t) => ({
  releaseBrake: t.field({
    type: CircuitBreakerType,
    scope: 'operator',
    right: 'support',
    description: 'Closes a circuit breaker, so that workers destroy machines of the engine again.',
    args: { engine: t.arg({ type: 'Line', required: true, description: 'The name of the engine in brakes.' }) },
    resolve: (_, { engine }, context) => closeBreaker(context, engine),
  }),
}));
