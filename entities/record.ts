/**
 * Events and audit entries are written together, in the transaction of the change that they tell of: both exist
 * if and only if the change does.
 */
import type { Actor } from './audit.ts';
import type { Queryable } from './database.ts';
import type { EventType } from './event.ts';
import { newId } from './ids.ts';

export type ResourceType =
  | 'server'
  | 'topup'
  | 'api_key'
  | 'ssh_key'
  | 'session'
  | 'account'
  | 'canary'
  | 'peering'
  | 'incident'
  | 'agent';

export interface Happening {
  type: EventType;
  resource: ResourceType;
  actor: Actor;
  data?: Record<string, unknown>;
}

/**
 * Two CTEs that record a change, for statements that make the change themselves: `from` names a relation with the
 * columns account_id and subject, `first` is the number of the first of the parameters of `recordParameters`.
 */
export const recordSql = (from: string, first: number): string => `
  event_written as (
    insert into event (id, account_id, type, subject, data)
    select $${first}, account_id, $${first + 1}, subject, $${first + 2}::jsonb from ${from}),
  audit_written as (
    insert into audit_entry (id, account_id, action, actor_type, actor_id, actor_name, resource_type, resource_id, request_id)
    select $${first + 3}, account_id, $${first + 1}, $${first + 4}, $${first + 5}, $${first + 6}, $${first + 7}, subject, $${first + 8} from ${from})`;

export const recordParameters = ({ type, resource, actor, data }: Happening): unknown[] => [
  newId('evt'),
  type,
  JSON.stringify(data ?? {}),
  newId('aud'),
  actor.type,
  actor.id,
  actor.name,
  resource,
  actor.requestId,
];

/** Records a change that was made by another statement of the same transaction. */
export async function record(tx: Queryable, accountId: string, subject: string, happening: Happening): Promise<void> {
  await tx.query(
    `with changed as (select $1::text as account_id, $2::text as subject), ${recordSql('changed', 3)} select 1`,
    [accountId, subject, ...recordParameters(happening)],
  );
}
