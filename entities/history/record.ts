/**
 * Records changes: it writes the event and the audit entry in the transaction of the change. Both exist if and only if the
 * change does.
 */
import type { EntitySchema } from 'typeorm';
import { ApiKey } from '../accounts/credential.ts';
import { Message } from '../accounts/message.ts';
import { SshKey } from '../accounts/ssh-key.ts';
import { Agent } from '../agents/agent.ts';
import type { Change } from '../database/bus.ts';
import { columnsOf } from '../database/table.ts';
import type { Transaction } from '../database/transaction.ts';
import { newId } from '../ids.ts';
import { TopUp } from '../payments/top-up.ts';
import { Server } from '../servers/server.ts';
import { Canary, Incident } from '../transparency/transparency.ts';
import { deliveriesFor, outboxSql, WEBHOOK_IDS_SQL } from '../webhooks/outbox.ts';
import { Webhook } from '../webhooks/webhook.ts';
import { type Actor, OPERATOR_ACCOUNT } from './audit.ts';
import type { EventType, ResourceEventType, ResourceType } from './event.ts';

/** A change as its event describes it. */
export type Act = { data?: Record<string, unknown> } & (
  | { type: ResourceEventType; resource?: undefined }
  | { type: EventType; resource: ResourceType }
);
/** A change as its event and its audit entry describe it. */
export type Happening = Act & { actor: Actor };

/** Returns the kind of the changed resource. */
const resourceOf = ({ type, resource }: Happening): ResourceType => resource ?? (type.split('.')[0] as ResourceType);

/** The table of each resource, and the column that the subject of an event names. Webhooks receive these rows. */
export const RESOURCE_ROWS: Partial<Record<ResourceType, { entity: EntitySchema; key: string }>> = {
  server: { entity: Server, key: 'order_number' },
  topup: { entity: TopUp, key: 'order_number' },
  api_key: { entity: ApiKey, key: 'id' },
  ssh_key: { entity: SshKey, key: 'id' },
  webhook: { entity: Webhook, key: 'id' },
  agent: { entity: Agent, key: 'id' },
  canary: { entity: Canary, key: 'id' },
  incident: { entity: Incident, key: 'id' },
  message: { entity: Message, key: 'id' },
};

/**
 * Returns CTEs that record a change, for statements that make the change themselves.
 * @param from a relation with the columns account_id and subject, and with the columns of the row for webhooks
 * @param first the number of the first of `recordParameters`
 * @param table the table of the row; undefined if it has none
 */
export const recordSql = (from: string, first: number, table: EntitySchema | undefined): string =>
  recordedSql(from, table, (place) => `$${first + place}`);

/** Returns the same CTEs. `value` returns the expression for each of `recordParameters` by its place. */
const recordedSql = (from: string, table: EntitySchema | undefined, value: (place: number) => string): string => `
  event_written as (
    insert into event (id, account_id, type, subject, data)
    select ${value(0)}, account_id, ${value(1)}, subject, ${value(2)}::jsonb from ${from}),
  audit_written as (
    insert into audit_entry (id, account_id, action, actor_type, actor_id, actor_name, resource_type, resource_id, request_id, count)
    select ${value(3)}, account_id, ${value(1)}, ${value(4)}, ${value(5)}, ${value(6)}, ${value(7)}, subject, ${value(8)},
      coalesce((${value(2)}::jsonb->>'count')::int, 1) from ${from}),
  ${outboxSql(from, value(0), value(1), table)}`;

export const recordParameters = (happening: Happening): unknown[] => {
  const { type, actor, data = {} } = happening;
  const [eventId, auditId] = [newId('evt'), newId('aud')];
  const { type: actorType, id, name, requestId } = actor;
  return [eventId, type, JSON.stringify(data), auditId, actorType, id, name, resourceOf(happening), requestId];
};

/** Composes SQL once for each kind of resource. */
function byResource(compose: (resource: ResourceType) => string): (resource: ResourceType) => string {
  const composed = new Map<ResourceType, string>();
  return (resource) => {
    const known = composed.get(resource) ?? compose(resource);
    composed.set(resource, known);
    return known;
  };
}

/** Records one change. $1 account, $2 subject, then `recordParameters`. */
const recordOne = byResource(
  (resource) =>
    `with given as (select $1::text as account_id, $2::text as subject),
      changed as (select given.*${rowOf(resource, '$2')}),
      ${recordSql('changed', 3, RESOURCE_ROWS[resource]?.entity)} select ${WEBHOOK_IDS_SQL}`,
);

/** Records many changes. $1 a JSON array of [account, subject, `recordParameters`]. */
const recordMany = byResource(
  (resource) =>
    `with given as (select item->>0 as account_id, item->>1 as subject, item->2 as happening
        from jsonb_array_elements($1::jsonb) as item),
      changed as (select given.*${rowOf(resource, 'given.subject')}),
      ${recordedSql('changed', RESOURCE_ROWS[resource]?.entity, (place) => `(changed.happening->>${place})`)} select ${WEBHOOK_IDS_SQL}`,
);

/** Records a change that another statement of the transaction makes. @returns the id of the event */
export async function record(
  tx: Transaction,
  accountId: string,
  subject: string,
  happening: Happening,
): Promise<string> {
  const parameters = recordParameters(happening);
  const [written] = await tx.query<{ webhookIds: string[] }>(recordOne(resourceOf(happening)), [
    accountId,
    subject,
    ...parameters,
  ]);
  tx.changedAll([...deliveriesFor(written?.webhookIds), ...toldBy(accountId, happening, parameters)]);
  return parameters[0] as string;
}

/**
 * Records many changes that other statements of the transaction make. It needs one statement for all changes to one kind of
 * resource.
 */
export async function recordAll(
  tx: Transaction,
  happenings: (Happening & { accountId: string; subject: string })[],
): Promise<void> {
  for (const [resource, alike] of Map.groupBy(happenings, resourceOf)) {
    const given = alike.map(
      ({ accountId, subject, ...happening }) => [accountId, subject, recordParameters(happening)] as const,
    );
    const [written] = await tx.query<{ webhookIds: string[] }>(recordMany(resource), [JSON.stringify(given)]);
    tx.changedAll(deliveriesFor(written?.webhookIds));
    for (const [i, [accountId, , parameters]] of given.entries())
      tx.changedAll(toldBy(accountId, alike[i]!, parameters));
  }
}

/** The changes that tell others: of an event of the operator, and of an entry of the public directory. */
const toldBy = (accountId: string, { type }: Happening, [eventId]: unknown[]): Change[] => [
  ...(accountId === OPERATOR_ACCOUNT ? [{ kind: 'operatorEvent', accountId, id: eventId as string } as const] : []),
  ...(type === 'agent.updated' ? [{ kind: 'agent', accountId, id: null } as const] : []),
];

/** Returns the columns of the changed row, and the relation `given` joined with it. */
function rowOf(resource: ResourceType, subject: string): string {
  const row = RESOURCE_ROWS[resource];
  if (!row) return ' from given';
  const columns = columnsOf(row.entity, undefined, ['accountId']);
  return `, row.* from given
    left join lateral (select ${columns} from ${row.entity.options.tableName} where ${row.key} = ${subject}) as row on true`;
}
