/** Events: one for each change that concerns a customer. The transaction of the change writes it (outbox). */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, entity, nullable, type Row, type RowOf } from '../database/table.ts';

export const EVENT_TYPES = [
  'server.created',
  'server.provisioning',
  'server.running',
  'server.stopped',
  'server.failed',
  'server.updated',
  'server.action_failed',
  'server.renewed',
  'server.suspended',
  'server.traffic_warned',
  'server.traffic_charged',
  'server.deleted',
  'topup.created',
  'topup.confirming',
  'topup.confirmed',
  'topup.expired',
  'topup.cancelled',
  'balance.low',
  'api_key.created',
  'api_key.revoked',
  'api_key.expired',
  'ssh_key.created',
  'ssh_key.deleted',
  'webhook.created',
  'webhook.deleted',
  'webhook.secret_rotated',
  'webhook.disabled',
  'webhook.enabled',
  'webhook.test',
  'session.created',
  'session.revoked',
  'oauth_client.created',
  'oauth_client.removed',
  'oauth_client.secret_rotated',
  'session.reuse_detected',
  'session.login_failed',
  'session.code_failed',
  'session.login_throttled',
  'session.refused',
  'session.network_refused',
  'api_key.refused',
  'api_key.network_refused',
  'oauth_client.refused',
  'oauth_client.network_refused',
  'account.password_changed',
  'account.totp_enabled',
  'account.totp_disabled',
  'account.recovery_codes_renewed',
  'account.password_reset',
  'account.totp_reset',
  'account.updated',
  'account.recovered',
  'account.restored',
  'account.suspended',
  'account.resumed',
  'account.limits_changed',
  'message.created',
  'message.received',
  'message.sent',
  'account.credentials_revoked',
  'case.opened',
  'case.measure_taken',
  'case.closed',
  'coin.updated',
  'status.changed',
  'canary.updated',
  'agent.updated',
  'host.updated',
  'host.retired',
  'host.wiped',
  'address_pool.updated',
  'catalog.updated',
  'task.updated',
  'finding.reported',
  'engine.updated',
  'engine.braked',
  'engine.released',
  'manual_job.closed',
  'balance.adjusted',
  'payment.unmatched',
  'payment.held',
  'payment.late',
  'payment.assigned',
  'payment.reversed',
  'payment.restored',
  'payment.written_off',
  'payment.returned',
  'payment.looked_up',
  'payment.lost',
  'payment.missing',
  'payment.found',
  'payout.requested',
  'payout.exported',
  'payout.broadcast',
  'payout.final',
  'payout.cancelled',
  'movement.recorded',
  'month.closed',
  'gateway.warned',
  'proposal.updated',
  'operator.updated',
  'operator.signed_in',
  'operator.signed_out',
  'operator.refused',
  'operator.invitation_opened',
  'note.added',
  'backup.noted',
  'backup.restored',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

type Noun<Type> = Type extends `${infer First}.${string}` ? First : never;
/** The kind of the changed resource: the first word of the event's type, if that word names a resource. */
export type ResourceType =
  | Exclude<Noun<EventType>, 'balance' | 'catalog' | 'status'>
  | 'bonus'
  | 'image'
  | 'region'
  | 'stock'
  | 'tier'
  | 'incident'
  | 'peering';
/** The types of events whose first word names the resource. */
export type ResourceEventType = EventType & `${ResourceType}.${string}`;

export const Event = entity('event', {
  id: column.key(),
  accountId: column.text(),
  type: column.text(),
  /** The id or order number of the changed resource. */
  subject: column.text(),
  data: column.json<Record<string, unknown>>(),
  createdAt: column.now(),
});
export type Event = RowOf<typeof Event>;

const { id, type, subject, data, createdAt } = Event.columns;
/** An event of the operator. Without an account of its own, the audit log finds the account of its subject. */
const OPERATOR_EVENT = { id, type, subject, data, createdAt };
export type OperatorEvent = Row<typeof OPERATOR_EVENT>;
const operatorEvents = (which: string) =>
  statement(OPERATOR_EVENT, { replans: true })`
    select ${columnsOf(Event, 'event', ['accountId'])} from event where account_id = 'operator' and ${which}`;
const listed = (range: string, order: string) =>
  operatorEvents(`${range} and ($3::timestamptz is null or created_at >= $3) order by ${order} limit $4::int`);
/** The newest $4 events of the operator. $1 and $2 the range of their ids, $3 the earliest time, or null. */
export const LIST_OPERATOR_EVENTS = listed('id >= $1 and id < $2', 'id desc');
/** The same for the type $5. Only the index by type fits. */
export const LIST_OPERATOR_EVENTS_OF_TYPE = listed(
  '(type, id) >= ($5, $1) and (type, id) < ($5, $2)',
  'type desc, id desc',
);
/** The newest event of the operator. */
export const LATEST_OPERATOR_EVENT = operatorEvents('true order by id desc limit 1');
/** The event $1 of the operator. */
export const FIND_OPERATOR_EVENT = operatorEvents('id = $1');
/** The events of the operator since the time $1, the oldest first. $2 the bound of their ids. */
export const OPERATOR_EVENTS_SINCE = operatorEvents('id > $2 and created_at >= $1 order by id');

/** When the last change was. No row: there was none. */
export const LAST_CHANGE = statement({ createdAt: Event.columns.createdAt })`
  select created_at from event order by id desc limit 1`;

/** Days for which customers' events stay. */
export const EVENT_DAYS = 400;
/**
 * Deletes old events of customers among the next $3 after the id $1. It keeps the newest of each subject. $2 is the bound of
 * their ids. `last` is the last id that it looked at; null: there are no more.
 */
export const DELETE_OLD_EVENTS = statement({ last: nullable(column.key()), deleted: column.int() })`
  select last, deleted from delete_old_events($1, $2, $3)`;
