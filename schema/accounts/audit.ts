/** The audit log. */
import type { AuditEntry } from '../../entities/history/audit.ts';
import { AUDIT_KINDS, listAudit } from '../../resolvers/accounts/audit.ts';
import { isRefusal } from '../../resolvers/accounts/request-audit.ts';
import { SECURITY_EVENTS } from '../../resolvers/accounts/security-log.ts';
import type { Viewer } from '../../resolvers/context.ts';
import { builder, enumType, objectType } from '../builder.ts';
import { pageArgs, pageOf } from '../pages.ts';

const AuditActor = objectType<AuditEntry>('AuditActor', 'The actor of an entry.', (t) => ({
  type: t.exposeString('actorType', { description: 'api_key, access_token, operator or system.' }),
  id: t.string({
    nullable: true,
    description: 'The id of the credential, never the credential itself.',
    resolve: (entry, _, { viewer }) => (isNameless(entry, viewer) ? entry.actorType : entry.actorId),
  }),
  name: t.string({
    nullable: true,
    description: 'Customers see no names of operators.',
    resolve: (entry, _, { viewer }) => (isNameless(entry, viewer) ? entry.actorType : entry.actorName),
  }),
}));
const isNameless = ({ actorType }: AuditEntry, viewer: Viewer | null) =>
  actorType === 'operator' && viewer?.kind !== 'operator';

const ResourceRef = objectType<{ type: string; id: string }>('ResourceRef', 'A reference to a resource.', (t) => ({
  type: t.exposeString('type', { description: 'The kind of the resource, such as server.' }),
  id: t.exposeString('id', { description: 'The id or order number of the resource.' }),
}));

const AuditEntryType = objectType<AuditEntry>(
  'AuditEntry',
  'An entry of the audit log. It has no body, query, credential or IP address.',
  (t) => ({
    id: t.exposeID('id', { description: 'The id of the entry.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
    action: t.exposeString('action', { description: 'The type of an event, or api.request.' }),
    actor: t.field({
      type: AuditActor,
      description: 'The credential, the operator or the service that acted.',
      resolve: (entry) => entry,
    }),
    method: t.exposeString('method', { nullable: true, description: 'The HTTP method of api.request.' }),
    path: t.exposeString('path', {
      nullable: true,
      description: 'The path template of api.request; for MCP, /mcp# and the tool.',
    }),
    status: t.exposeInt('status', { nullable: true, description: 'The HTTP status of api.request.' }),
    resource: t.field({
      type: ResourceRef,
      nullable: true,
      description: 'The changed resource. In the log of the operator, api.request names the account that it concerned.',
      resolve: ({ resourceType, resourceId }) =>
        resourceType !== null && resourceId !== null ? { type: resourceType, id: resourceId } : null,
    }),
    count: t.int({
      nullable: true,
      description:
        'How often an attack or a refusal came since its entry before, at most one entry a minute; else null.',
      resolve: ({ action, status, count }) => (SECURITY_EVENTS.has(action) || isRefusal(status) ? count : null),
    }),
    requestId: t.exposeString('requestId', {
      nullable: true,
      description: 'The id of the request, which all its entries share.',
    }),
  }),
);
const AuditKind = enumType(
  'AuditKind',
  'The kind of an entry. ACT: something changed. REQUEST: a plain request, which is api.request.',
  AUDIT_KINDS,
);
const AuditEntryPage = pageOf('AuditEntry', AuditEntryType);

builder.queryFields((t) => ({
  auditLog: t.field({
    type: AuditEntryPage,
    scope: 'read',
    description: 'The audit log of the account for the last 90 days, newest first.',
    args: {
      ...pageArgs(),
      accountId: t.arg({
        type: 'ID',
        description:
          'For the operator: the log of this account. Absent: the own log. For the operator, it is `operator`, and has the acts of operators on customers, too.',
      }),
      operator: t.arg({
        type: 'ID',
        description: 'For the operator: only what this operator did, in all logs. `operator` is the first owner.',
      }),
      action: t.arg({
        type: ['AuditAction'],
        description:
          'Only these actions, or those that begin so: api.request, or the type of an event. An unknown action has no entries.',
      }),
      kind: t.arg({ type: AuditKind, description: 'Only entries of this kind.' }),
      since: t.arg({ type: 'RangeStart', description: 'Only entries of this day or time, or later.' }),
      until: t.arg({ type: 'RangeEnd', description: 'Only entries before this time, or to this day.' }),
    },
    resolve: (_, { limit, cursor, ...filter }, context) => listAudit(context, { limit, cursor }, filter),
  }),
}));
