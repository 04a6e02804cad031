/** The audit log: the actor, the act and its time. It has no column for an address, a body or a credential. */
import { entity, int, key, now, nullable, type RowOf, text } from '../database/table.ts';

/** The actor: a credential of a customer, the operator, or the system. */
export interface Actor {
  type: 'api_key' | 'access_token' | 'operator' | 'system';
  id: string | null;
  name: string | null;
  /** The request of the actor. */
  requestId: string | null;
}
/** The account that holds the operator's acts, except acts on a customer's account. */
export const OPERATOR_ACCOUNT = 'operator';
export const SYSTEM: Actor = { type: 'system', id: null, name: null, requestId: null };

export const AuditEntry = entity(
  'audit_entry',
  {
    id: key(),
    accountId: text(),
    action: text(),
    actorType: text(),
    actorId: nullable(text()),
    actorName: nullable(text()),
    /** The changed resource. Null for `api.request`. */
    resourceType: nullable(text()),
    resourceId: nullable(text()),
    requestId: nullable(text()),
    /** The method, the template of the path, and the status of the response. Only `api.request` has them. */
    method: nullable(text()),
    path: nullable(text()),
    status: nullable(int()),
    createdAt: now(),
  },
  [
    { name: 'audit_entry_account', columns: ['accountId', 'id'] },
    { name: 'audit_entry_action', columns: ['accountId', 'action', 'id'] },
  ],
);
export type AuditEntry = RowOf<typeof AuditEntry>;

/** The action of recorded requests. All other actions are types of events. */
export const API_REQUEST = 'api.request';
/** Days until the service deletes entries. */
export const AUDIT_DAYS = 90;
