/** The audit log. */
import type { AuditEntry } from '../../entities/history/audit.ts';
import { listAudit } from '../../resolvers/accounts/audit.ts';
import { builder } from '../builder.ts';
import { pageArgs, pageOf } from '../pages.ts';

const AuditActor = builder.objectRef<AuditEntry>('AuditActor').implement({
  description: 'Who did it.',
  fields: (t) => ({
    type: t.exposeString('actorType', { description: 'api_key, access_token, operator or system.' }),
    id: t.exposeString('actorId', { nullable: true, description: 'The id of the credential, never the credential.' }),
    name: t.exposeString('actorName', { nullable: true }),
  }),
});

const ResourceRef = builder.objectRef<{ type: string; id: string }>('ResourceRef').implement({
  description: 'What something is about.',
  fields: (t) => ({
    type: t.exposeString('type'),
    id: t.exposeString('id', { description: 'Its id or order number.' }),
  }),
});

const AuditEntryType = builder.objectRef<AuditEntry>('AuditEntry').implement({
  description: 'Something that happened. It has neither body nor query, neither credential nor address.',
  fields: (t) => ({
    id: t.exposeID('id'),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
    action: t.exposeString('action', { description: 'The type of an event, or api.request.' }),
    actor: t.field({ type: AuditActor, resolve: (entry) => entry }),
    method: t.exposeString('method', { nullable: true, description: 'Of api.request.' }),
    path: t.exposeString('path', {
      nullable: true,
      description: 'Of api.request: the template of the path; for MCP, /mcp# and the tool.',
    }),
    status: t.exposeInt('status', { nullable: true, description: 'Of api.request: the status of the answer.' }),
    resource: t.field({
      type: ResourceRef,
      nullable: true,
      description: 'What changed; null for api.request.',
      resolve: ({ resourceType, resourceId }) =>
        resourceType !== null && resourceId !== null ? { type: resourceType, id: resourceId } : null,
    }),
    requestId: t.exposeString('requestId', { nullable: true, description: 'Shared by all that one request did.' }),
  }),
});
const AuditEntryPage = pageOf('AuditEntry', AuditEntryType);

builder.queryFields((t) => ({
  auditLog: t.field({
    type: AuditEntryPage,
    scope: 'read',
    description: 'What happened on the account in the last 90 days, newest first.',
    args: {
      ...pageArgs(),
      action: t.arg({
        type: 'AuditAction',
        description: 'Only this action: api.request or the type of an event; an unknown one has no entries.',
      }),
      since: t.arg({ type: 'DateTime', description: 'Only what happened then or later.' }),
      until: t.arg({ type: 'DateTime', description: 'Only what happened before then.' }),
    },
    resolve: (_, { action, since, until, ...page }, context) => listAudit(context, page, { action, since, until }),
  }),
}));
