/** The audit log: who did what, and never from where. It has no column for an address, a body or a credential. */
import { entity, key, now, nullable, type RowOf, text } from './entity.ts';

/** Who acts: a credential of a customer, the operator, or the system itself. */
export interface Actor {
  type: 'api_key' | 'access_token' | 'operator' | 'system';
  id: string | null;
  name: string | null;
  /** The request that asked for it. */
  requestId: string | null;
}
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
    resourceType: text(),
    resourceId: text(),
    requestId: nullable(text()),
    createdAt: now(),
  },
  [{ name: 'audit_entry_account', columns: ['accountId', 'id'] }],
);
export type AuditEntry = RowOf<typeof AuditEntry>;
