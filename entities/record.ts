/**
 * Events and audit entries are written together, in the transaction of the change that they tell of: both exist
 * if and only if the change does.
 */
import type { EntitySchema } from 'typeorm';
import type { Actor } from './audit.ts';
import { ApiKey } from './credential.ts';
import type { Transaction } from './database.ts';
import { columnsOf } from './entity.ts';
import type { EventType } from './event.ts';
import { newId } from './ids.ts';
import { outboxSql, WEBHOOKS_WOKEN, WOKEN_SQL } from './outbox.ts';
import { Server } from './server.ts';
import { SshKey } from './ssh-key.ts';
import { TopUp } from './top-up.ts';
import { Webhook } from './webhook.ts';

export type ResourceType =
  | 'server'
  | 'topup'
  | 'api_key'
  | 'ssh_key'
  | 'session'
  | 'oauth_client'
  | 'account'
  | 'coin'
  | 'webhook'
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

/** Where the row stands that an event is about, and by what its subject names it. Webhooks are told of it. */
export const RESOURCE_ROWS: Partial<Record<ResourceType, { entity: EntitySchema; key: string }>> = {
  server: { entity: Server, key: 'order_number' },
  topup: { entity: TopUp, key: 'order_number' },
  api_key: { entity: ApiKey, key: 'id' },
  ssh_key: { entity: SshKey, key: 'id' },
  webhook: { entity: Webhook, key: 'id' },
};

/**
 * CTEs that record a change, for statements that make the change themselves: `from` names a relation with the
 * columns account_id and subject, and those of the row for webhooks to be told of it; `first` is the number of the first of the parameters of `recordParameters`.
 */
export const recordSql = (from: string, first: number): string => `
  event_written as (
    insert into event (id, account_id, type, subject, data)
    select $${first}, account_id, $${first + 1}, subject, $${first + 2}::jsonb from ${from}),
  audit_written as (
    insert into audit_entry (id, account_id, action, actor_type, actor_id, actor_name, resource_type, resource_id, request_id)
    select $${first + 3}, account_id, $${first + 1}, $${first + 4}, $${first + 5}, $${first + 6}, $${first + 7}, subject, $${first + 8} from ${from}),
  ${outboxSql(from, `$${first}`, `$${first + 1}`)}`;

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

/** Records changes of many things, which were made by other statements of the same transaction. */
export async function recordAll(
  tx: Transaction,
  happenings: (Happening & { accountId: string; subject: string })[],
): Promise<void> {
  for (const { accountId, subject, ...happening } of happenings) await record(tx, accountId, subject, happening);
}

/** The expression for the API key that acts, or null if another credential does; `first` as in `recordSql`. */
export const actingKeySql = (first: number): string => `case when $${first + 4} = 'api_key' then $${first + 5} end`;

/** Records a change that was made by another statement of the same transaction. @returns the id of the event */
export async function record(
  tx: Transaction,
  accountId: string,
  subject: string,
  happening: Happening,
): Promise<string> {
  const parameters = recordParameters(happening);
  const row = RESOURCE_ROWS[happening.resource];
  const rowSql = row
    ? `left join (select ${columnsOf(row.entity)} from ${row.entity.options.tableName} where ${row.key} = $2) as row on true`
    : '';
  const [{ webhooksWoken } = { webhooksWoken: false }] = await tx.query<{ webhooksWoken: boolean }>(
    `with changed as (select given.account_id, given.subject${row ? ', row.*' : ''}
        from (select $1::text as account_id, $2::text as subject) as given ${rowSql}),
      ${recordSql('changed', 3)} select ${WOKEN_SQL}`,
    [accountId, subject, ...parameters],
  );
  if (webhooksWoken) tx.changed(WEBHOOKS_WOKEN);
  return parameters[0] as string;
}
