/** Deliveries: one event on its way to one webhook. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, defaulting, entity, nullable, type RowOf } from '../database/table.ts';
import { Event } from '../history/event.ts';
import type { Lifecycle } from '../history/lifecycle.ts';
import { expression, moveStatement } from '../history/transition.ts';
import { CREATOR_REVOKED, SECRET_REVOKED, WEBHOOK_LIFECYCLE } from './webhook.ts';

export const DELIVERY_STATUSES = ['PENDING', 'DELIVERING', 'RETRYING', 'SUCCEEDED', 'FAILED'] as const;

export const WebhookDelivery = entity('webhook_delivery', {
  id: column.key(),
  accountId: column.text(),
  webhookId: column.text(),
  eventId: column.text(),
  eventType: column.text(),
  status: defaulting(column.oneOf(...DELIVERY_STATUSES), "'PENDING'"),
  attempts: defaulting(column.int(), 0),
  responseStatus: nullable(column.int()),
  durationMs: nullable(column.int()),
  /** One of a fixed set of codes. The receiver's answer is not stored. */
  error: nullable(column.text()),
  firstAttemptAt: nullable(column.timestamp()),
  /** Null at the end. During an attempt it lies in the past, so that another worker can take the delivery over. */
  nextAttemptAt: nullable(column.timestamp()),
  /** When the last attempt ended. A trigger writes it. */
  endedAt: nullable(column.timestamp()),
  createdAt: column.now(),
  /** When the customer last had it repeated. */
  redeliveredAt: nullable(column.timestamp()),
});
export type WebhookDelivery = RowOf<typeof WebhookDelivery>;

/** The changed row of an event after the change, without secrets. All deliveries of the event share it. */
const WebhookSnapshot = entity('webhook_snapshot', {
  eventId: column.key(),
  snapshot: column.json<Record<string, unknown>>(),
});
export type Snapshot = RowOf<typeof WebhookSnapshot>['snapshot'];

/** Reads the event $1 and its snapshot. A test has none. */
export const FIND_TOLD_EVENT = statement({ ...Event.columns, snapshot: nullable(WebhookSnapshot.columns.snapshot) })`
  select ${columnsOf(Event)}, snapshot from event left join webhook_snapshot on event_id = event.id where event.id = $1`;

/** A worker also takes over a delivery that another worker left in DELIVERING. The customer can have an ended one repeated. */
export const DELIVERY_LIFECYCLE: Lifecycle<WebhookDelivery, WebhookDelivery['status']> = {
  table: WebhookDelivery,
  key: 'id',
  state: 'status',
  transitions: {
    PENDING: ['DELIVERING', 'FAILED'],
    DELIVERING: ['DELIVERING', 'RETRYING', 'SUCCEEDED', 'FAILED'],
    RETRYING: ['DELIVERING', 'FAILED'],
    SUCCEEDED: ['PENDING'],
    FAILED: ['PENDING'],
  },
};

/** Takes due deliveries of the webhook $1, $2 at most, and skips locked ones. The array is computed once. */
export const TAKE_DELIVERIES = moveStatement(
  DELIVERY_LIFECYCLE,
  'DELIVERING',
  `id = any(array(
    select id from webhook_delivery where webhook_id = $1 and next_attempt_at <= now() order by next_attempt_at, id limit $2
    for update skip locked))`,
  { firstAttemptAt: expression('coalesce(first_attempt_at, now())') },
);

const OPEN = 'webhook_id = $1 and next_attempt_at is not null';
/** Ends the open deliveries of the webhook $1, which is disabled. The customer can have them repeated. */
export const STOP_DELIVERIES = moveStatement(DELIVERY_LIFECYCLE, 'FAILED', OPEN, {
  error: expression(`coalesce(error, 'disabled')`),
  nextAttemptAt: expression('null'),
});

/** A webhook repeats so many deliveries a minute, and each delivery once a minute. */
export const REDELIVERIES_PER_MINUTE = 60;
/** The seconds until the webhook $1 may repeat the delivery $2; no row: it may now. */
export const SECONDS_TO_REDELIVERY = statement({ seconds: column.real() })`
  select extract(epoch from redelivered_at + interval '1 minute' - now())::float8 as seconds from (
    select redelivered_at from webhook_delivery where webhook_id = $1 and id = $2 and redelivered_at > now() - interval '1 minute'
    union all (select redelivered_at from webhook_delivery where webhook_id = $1 and redelivered_at > now() - interval '1 minute'
      order by redelivered_at desc offset ${REDELIVERIES_PER_MINUTE - 1} limit 1)) as earlier
  order by 1 desc limit 1`;

/** The element of an array for a delivery, which has the place of its id in $1. */
const elementOf = (array: string) => expression(`(${array})[array_position($1::text[], webhook_delivery.id)]`);
const writeAttempts = (outcome: WebhookDelivery['status']) =>
  moveStatement(DELIVERY_LIFECYCLE, outcome, 'id = any($1::text[])', {
    attempts: expression('attempts + 1'),
    responseStatus: elementOf('$2::int[]'),
    durationMs: elementOf('$3::int[]'),
    error: elementOf('$4::text[]'),
    nextAttemptAt: expression(`now() + ${elementOf('$5::float8[]').sql} * interval '1 second'`),
  });
/** Write an attempt of each of the deliveries $1: response status $2, duration $3, error $4, pause $5 in seconds. */
export const WRITE_ATTEMPTS = {
  SUCCEEDED: writeAttempts('SUCCEEDED'),
  RETRYING: writeAttempts('RETRYING'),
  FAILED: writeAttempts('FAILED'),
};

/** Disables the webhook $1 for the reason $4: in any case ($2), or if no delivery succeeded since $3. */
export const DISABLE_WEBHOOK = moveStatement(
  WEBHOOK_LIFECYCLE,
  'DISABLED',
  'id = $1 and ($2::boolean or last_success_at is null or last_success_at < $3)',
  { disabledReason: expression('$4::text') },
);

/** Disables the webhooks of the account $1 that the credentials $2 created. */
export const DISABLE_CREATED = moveStatement(
  WEBHOOK_LIFECYCLE,
  'DISABLED',
  'account_id = $1 and limited_by = any($2::text[])',
  { disabledReason: expression(`'${CREATOR_REVOKED}'`) },
);
/**
 * Writes the same reason for those that were disabled before, so that no test enables them. The move has locked them. An
 * expired one keeps its reason, and so does one whose secret was revoked.
 */
export const NOTE_CREATOR_REVOKED = statement({})`
  update webhook set disabled_reason = '${CREATOR_REVOKED}' where account_id = $1 and limited_by = any($2::text[])
    and status = 'DISABLED' and disabled_reason not in ('expired', '${SECRET_REVOKED}')`;

/** Enables the webhook $1 that was disabled for the reason $2, unless it has expired. */
export const ENABLE_WEBHOOK = moveStatement(
  WEBHOOK_LIFECYCLE,
  'ENABLED',
  'id = $1 and disabled_reason = $2 and (expires_at is null or expires_at > clock_timestamp())',
  { disabledReason: expression('null') },
);

/** Locks the deliveries $1. */
export const LOCK_DELIVERIES = statement({})`
  select from webhook_delivery where id = any($1::text[]) order by id for update`;

/** Locks the open deliveries of the webhook $1. */
export const LOCK_OPEN_DELIVERIES = statement({})`select from webhook_delivery where ${OPEN} order by id for update`;

/** Returns the seconds until the next attempt of the webhook $1, or null without one. */
export const SECONDS_TO_NEXT_ATTEMPT = statement({ seconds: nullable(column.real()) })`
  select extract(epoch from min(next_attempt_at) - now())::float8 as seconds from webhook_delivery where ${OPEN}`;

/** The beginning of the ids of the deliveries of a row of `webhook_snapshot`, with more characters. */
const ofEventSql = (more: string) => `'dlv_' || substr(webhook_snapshot.event_id, 5, 10) || ${more}`;
/**
 * Deletes the deliveries of the relation `dropped`, and the snapshots that no other delivery needs. The id of a delivery begins with
 * the time of its event. If two transactions delete the last two deliveries of an event, its snapshot stays until it is old.
 */
const DROP_SQL = `
  spare as (
    select event_id from webhook_snapshot where event_id in (select event_id from dropped)
      and not exists (select from webhook_delivery as other where other.event_id = webhook_snapshot.event_id
        and other.id between ${ofEventSql("''")} and ${ofEventSql("'z'")} and other.id not in (select id from dropped))
      and not exists (select from task where subject = webhook_snapshot.event_id)
    order by event_id for update),
  forgotten as (delete from webhook_snapshot using spare where webhook_snapshot.event_id = spare.event_id)
  delete from webhook_delivery using dropped where webhook_delivery.id = dropped.id returning webhook_delivery.id`;

/**
 * Deletes up to $3 ended deliveries. They are older than $1 days, or not among the $2 newest of their webhook. It looks at the
 * webhooks with deliveries that ended within $4 seconds.
 */
export const DELETE_OLD_DELIVERIES = statement({ id: column.key() })`
  with busy as (
    select distinct webhook_id from webhook_delivery
    where ended_at > now() - $4::int * interval '1 second'),
  old as (
    select id from webhook_delivery where next_attempt_at is null and created_at < now() - $1::int * interval '1 day'
    union select ended.id from busy cross join lateral (
      select id from webhook_delivery where webhook_id = busy.webhook_id and next_attempt_at is null
      order by id desc offset $2::int) as ended
    limit $3),
  dropped as (
    select id, event_id from webhook_delivery where id in (select id from old) and next_attempt_at is null order by id for update),
  ${DROP_SQL}`;

/** Deletes up to $2 snapshots with ids of events below $1, in their order. No delivery of them is left. */
export const DELETE_OLD_SNAPSHOTS = statement({ eventId: column.key() })`
  with old as (
    select event_id from webhook_snapshot where event_id < $1 order by event_id limit $2::int for update)
  delete from webhook_snapshot using old where webhook_snapshot.event_id = old.event_id returning webhook_snapshot.event_id`;

/**
 * Fails the oldest waiting deliveries of each webhook, until $1 of its waiting ones are left. Those of messages go first, because
 * free accounts can write many. The operator can repeat them.
 */
export const FAIL_OLDEST_WAITING = moveStatement(
  DELIVERY_LIFECYCLE,
  'FAILED',
  `id = any(array(
    select oldest.id from (
      select webhook_id, count(*) - $1::int as above from webhook_delivery where next_attempt_at is not null
      group by webhook_id having count(*) > $1::int) as full_webhook
    cross join lateral (
      select id from webhook_delivery where webhook_id = full_webhook.webhook_id and next_attempt_at is not null
        and status <> 'DELIVERING' order by event_type = 'message.received' desc, id limit above) as oldest))`,
  { error: expression(`'too_many_waiting'`), nextAttemptAt: expression('null') },
);

/** Deletes all deliveries of the webhook $1. */
export const DELETE_DELIVERIES = statement({ id: column.key() })`
  with dropped as (select id, event_id from webhook_delivery where webhook_id = $1 order by id for update), ${DROP_SQL}`;

/** Writes the result of a test: webhook $1, delivery $2, event $3, status $4. Writes nothing for a deleted webhook. */
export const INSERT_TEST_DELIVERY = statement({})`
  insert into webhook_delivery (id, account_id, webhook_id, event_id, event_type, status, attempts, response_status, duration_ms, error)
  select $2, account_id, id, $3, 'webhook.test', $4, 1, $5, $6, $7 from webhook where id = $1`;

/** Reads the latest delivery of each of the webhooks $1. */
export const LATEST_DELIVERIES = statement(WebhookDelivery.columns)`
  select webhook_delivery.* from unnest($1::text[]) as webhook (id) cross join lateral (
    select ${columnsOf(WebhookDelivery)} from webhook_delivery where webhook_id = webhook.id order by webhook_delivery.id desc limit 1
  ) as webhook_delivery`;

/** Finds webhooks with a delivery that has waited $1 seconds. Their task neither runs nor is due within $2 seconds. */
export const FORGOTTEN_WEBHOOKS = statement({ id: column.text() })`
  select distinct webhook_id as id from webhook_delivery
  where status = 'PENDING' and created_at < now() - $1::float8 * interval '1 second'
    and not exists (
      select from task where subject = webhook_id and state = 'READY'
        and (leased_by is not null or run_at <= now() + $2::float8 * interval '1 second'))`;
