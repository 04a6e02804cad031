/**
 * Events and audit entries are written together, in the transaction of the change that they tell of: both exist
 * if and only if the change does.
 */
import type { EntitySchema } from 'typeorm';
import { ApiKey } from '../accounts/credential.ts';
import { SshKey } from '../accounts/ssh-key.ts';
import { Agent } from '../agents/agent.ts';
import { columnsOf } from '../database/table.ts';
import type { Transaction } from '../database/transaction.ts';
import { newId } from '../ids.ts';
import { TopUp } from '../payments/top-up.ts';
import { Server } from '../servers/server.ts';
import { Canary, Incident } from '../transparency/transparency.ts';
import { deliveriesFor, outboxSql, WEBHOOK_IDS_SQL } from '../webhooks/outbox.ts';
import { Webhook } from '../webhooks/webhook.ts';
import type { Actor } from './audit.ts';
import type { EventType, ResourceType } from './event.ts';

/** A change, as its event and its audit entry tell of it. */
export type Happening = { actor: Actor; data?: Record<string, unknown> } & (
  | { type: EventType & `${ResourceType}.${string}`; resource?: undefined }
  | { type: EventType; resource: ResourceType }
);

/** What the change is about. */
const resourceOf = ({ type, resource }: Happening): ResourceType => resource ?? (type.split('.')[0] as ResourceType);

/** Where the row stands that an event is about, and by what its subject names it. Webhooks are told of it. */
export const RESOURCE_ROWS: Partial<Record<ResourceType, { entity: EntitySchema; key: string }>> = {
  server: { entity: Server, key: 'order_number' },
  topup: { entity: TopUp, key: 'order_number' },
  api_key: { entity: ApiKey, key: 'id' },
  ssh_key: { entity: SshKey, key: 'id' },
  webhook: { entity: Webhook, key: 'id' },
  agent: { entity: Agent, key: 'id' },
  canary: { entity: Canary, key: 'id' },
  incident: { entity: Incident, key: 'id' },
};

/**
 * CTEs that record a change, for statements that make the change themselves: `from` names a relation with the
 * columns account_id and subject, and those of the row for webhooks to be told of it; `first` is the number of the first of the parameters of `recordParameters`.
 */
export const recordSql = (from: string, first: number): string => recordedSql(from, (place) => `$${first + place}`);

/** The same, where `value` gives the expression for each of `recordParameters`, by its place among them. */
const recordedSql = (from: string, value: (place: number) => string): string => `
  event_written as (
    insert into event (id, account_id, type, subject, data)
    select ${value(0)}, account_id, ${value(1)}, subject, ${value(2)}::jsonb from ${from}),
  audit_written as (
    insert into audit_entry (id, account_id, action, actor_type, actor_id, actor_name, resource_type, resource_id, request_id)
    select ${value(3)}, account_id, ${value(1)}, ${value(4)}, ${value(5)}, ${value(6)}, ${value(7)}, subject, ${value(8)} from ${from}),
  ${outboxSql(from, value(0), value(1))}`;

export const recordParameters = (happening: Happening): unknown[] => {
  const { type, actor, data = {} } = happening;
  const [eventId, auditId] = [newId('evt'), newId('aud')];
  const { type: actorType, id, name, requestId } = actor;
  return [eventId, type, JSON.stringify(data), auditId, actorType, id, name, resourceOf(happening), requestId];
};

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
  const [written] = await tx.query<{ webhookIds: string[] }>(
    `with given as (select $1::text as account_id, $2::text as subject),
      changed as (select given.*${rowOf(resourceOf(happening), '$2')}),
      ${recordSql('changed', 3)} select ${WEBHOOK_IDS_SQL}`,
    [accountId, subject, ...parameters],
  );
  tx.changed(...deliveriesFor(written?.webhookIds));
  return parameters[0] as string;
}

/**
 * Records changes of many things, which were made by other statements of the same transaction: as `record` does for each,
 * in one statement for all things of a kind.
 */
export async function recordAll(
  tx: Transaction,
  happenings: (Happening & { accountId: string; subject: string })[],
): Promise<void> {
  for (const [resource, alike] of Map.groupBy(happenings, resourceOf)) {
    const given = alike.map(({ accountId, subject, ...happening }) => [
      accountId,
      subject,
      recordParameters(happening),
    ]);
    const [written] = await tx.query<{ webhookIds: string[] }>(
      `with given as (select item->>0 as account_id, item->>1 as subject, item->2 as happening
          from jsonb_array_elements($1::jsonb) as item),
        changed as (select given.*${rowOf(resource, 'given.subject')}),
        ${recordedSql('changed', (place) => `(changed.happening->>${place})`)} select ${WEBHOOK_IDS_SQL}`,
      [JSON.stringify(given)],
    );
    tx.changed(...deliveriesFor(written?.webhookIds));
  }
}

/** The columns of the row that is changed, and the relation `given` joined with it. */
function rowOf(resource: ResourceType, subject: string): string {
  const row = RESOURCE_ROWS[resource];
  if (!row) return ' from given';
  const columns = columnsOf(row.entity, undefined, ['accountId']);
  return `, row.* from given
    left join lateral (select ${columns} from ${row.entity.options.tableName} where ${row.key} = ${subject}) as row on true`;
}
