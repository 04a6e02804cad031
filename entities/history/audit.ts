/** The audit log: who did what, and never from where. It has no column for an address, a body or a credential. */
import { entity, int, key, now, nullable, type RowOf, text } from '../database/table.ts';

/** Who acts: a credential of a customer, the operator, or the system itself. */
export interface Actor {
  type: 'api_key' | 'access_token' | 'operator' | 'system';
  id: string | null;
  name: string | null;
  /** The request that asked for it. */
  requestId: string | null;
}
/** Whose audit log the operator's own acts are in, where they concern no one customer. */
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
    /** What changed; null for `api.request`. */
    resourceType: nullable(text()),
    resourceId: nullable(text()),
    requestId: nullable(text()),
    /** Of `api.request` only: the method, the template of the path, and the status of the answer. */
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

/** The action under which requests are recorded; all others are types of events. */
export const API_REQUEST = 'api.request';
/** How long entries are kept. */
export const AUDIT_DAYS = 90;
