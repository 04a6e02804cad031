/** The open matters of the operator. */
import { listOpenMatters, MATTER_KINDS, type Matter, SEVERITIES } from '../resolvers/open-matters.ts';
import { builder, enumType, objectType } from './builder.ts';

const MatterKind = enumType(
  'MatterKind',
  'Backup: the last one is old, or there was none. Brake: an open circuit breaker. Canary: it expires soon, has expired, or was never published (`none`). Capacity: a tier is nearly sold out. Case: a complaint about a server is open. Gateway: it does not answer, or has a warning. Host: its engine reports it offline. Message: a customer waits for an answer, or accounts that never paid do (one matter, `unpaid`). Proposal: a large sum waits for another operator. Task: it is dead, or its last attempt failed.',
  MATTER_KINDS,
);
const Severity = enumType(
  'Severity',
  'Critical: something is out. Warning: it soon will be, or money waits.',
  SEVERITIES,
);
const MatterType = objectType<Matter>('Matter', 'Something that the operator should look at.', (t) => ({
  kind: t.expose('kind', { type: MatterKind }),
  subject: t.exposeString('subject', { description: 'The id, order number or name of the thing.' }),
  since: t.expose('since', {
    type: 'DateTime',
    nullable: true,
    description: 'When it began. Null: the service does not keep it.',
  }),
  severity: t.expose('severity', { type: Severity }),
  nextStep: t.exposeString('nextStep', { description: 'A sentence that names the next step.' }),
}));

builder.queryFields((t) => ({
  openMatters: t.field({
    type: [MatterType],
    scope: 'operator',
    description:
      'The open matters, the most urgent first. Each kind keeps a share of the places. The query asks each gateway.',
    args: { limit: t.arg({ type: 'PageLimit', required: true, defaultValue: 50, description: 'How many.' }) },
    resolve: (_, { limit }, context) => listOpenMatters(context, limit),
  }),
}));
