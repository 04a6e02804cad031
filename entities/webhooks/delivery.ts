/** Deliveries: one event on its way to one webhook. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, defaulting, entity, nullable, type RowOf } from '../database/table.ts';
import type { Lifecycle } from '../history/lifecycle.ts';
import { expression, moveStatement } from '../history/transition.ts';
import { WEBHOOK_LIFECYCLE } from './webhook.ts';

export const DELIVERY_STATUSES = ['PENDING', 'DELIVERING', 'RETRYING', 'SUCCEEDED', 'FAILED'] as const;

export const WebhookDelivery = entity('webhook_delivery', {
  id: column.key(),
  accountId: column.text(),
  webhookId: column.text(),
  eventId: column.text(),
  eventType: column.text(),
  /** The changed row after the change, without secrets. Null for an event without a row. */
  snapshot: nullable(column.json<Record<string, unknown>>()),
  status: defaulting(column.oneOf(...DELIVERY_STATUSES), "'PENDING'"),
  attempts: defaulting(column.int(), 0),
  responseStatus: nullable(column.int()),
  durationMs: nullable(column.int()),
  /** One of a fixed set of codes. The receiver's answer is not stored. */
  error: nullable(column.text()),
  firstAttemptAt: nullable(column.timestamp()),
  /** Null at the end. During an attempt it lies in the past, so that another worker can take the delivery over. */
  nextAttemptAt: nullable(column.timestamp()),
  createdAt: column.now(),
});
export type WebhookDelivery = RowOf<typeof WebhookDelivery>;

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
  { name: 'take deliveries' },
);

const OPEN = 'webhook_id = $1 and next_attempt_at is not null';
/** Ends the open deliveries of the webhook $1, which is disabled. The customer can have them repeated. */
export const STOP_DELIVERIES = moveStatement(DELIVERY_LIFECYCLE, 'FAILED', OPEN, {
  error: expression(`coalesce(error, 'disabled')`),
  nextAttemptAt: expression('null'),
});

/** The element of an array for a delivery, which has the place of its id in $1. */
const elementOf = (array: string) => expression(`(${array})[array_position($1::text[], webhook_delivery.id)]`);
const writeAttempts = (outcome: WebhookDelivery['status']) =>
  moveStatement(
    DELIVERY_LIFECYCLE,
    outcome,
    'id = any($1::text[])',
    {
      attempts: expression('attempts + 1'),
      responseStatus: elementOf('$2::int[]'),
      durationMs: elementOf('$3::int[]'),
      error: elementOf('$4::text[]'),
      nextAttemptAt: expression(`now() + ${elementOf('$5::float8[]').sql} * interval '1 second'`),
    },
    { name: `write attempts ${outcome}` },
  );
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
  { disabledReason: expression("'creator_revoked'") },
);

/** Locks the deliveries $1. */
export const LOCK_DELIVERIES = statement({})`
  select from webhook_delivery where id = any($1::text[]) order by id for update`;

/** Locks the open deliveries of the webhook $1. */
export const LOCK_OPEN_DELIVERIES = statement({})`select from webhook_delivery where ${OPEN} order by id for update`;

/** Returns the seconds until the next attempt of the webhook $1, or null without one. */
export const SECONDS_TO_NEXT_ATTEMPT = statement({ seconds: nullable(column.real()) })`
  select extract(epoch from min(next_attempt_at) - now())::float8 as seconds from webhook_delivery where ${OPEN}`;

/** Deletes the deliveries of the webhook $1 that have ended and are older than $2 days. */
export const DELETE_OLD_DELIVERIES = statement({})`
  delete from webhook_delivery
  where webhook_id = $1 and next_attempt_at is null and created_at < now() - $2::int * interval '1 day'`;

/** Deletes all deliveries of the webhook $1. */
export const DELETE_DELIVERIES = statement({})`
  with dropped as (select id from webhook_delivery where webhook_id = $1 order by id for update)
  delete from webhook_delivery using dropped where webhook_delivery.id = dropped.id`;

/** Writes the result of a test: webhook $1, delivery $2, event $3, status $4. Writes nothing for a deleted webhook. */
export const INSERT_TEST_DELIVERY = statement({})`
  insert into webhook_delivery (id, account_id, webhook_id, event_id, event_type, status, attempts, response_status, duration_ms, error)
  select $2, account_id, id, $3, 'webhook.test', $4, 1, $5, $6, $7 from webhook where id = $1`;

/** Reads the latest delivery of each of the webhooks $1. */
export const LATEST_DELIVERIES = statement(WebhookDelivery.columns)`
  select webhook_delivery.* from unnest($1::text[]) as webhook (id) cross join lateral (
    select ${columnsOf(WebhookDelivery)} from webhook_delivery where webhook_id = webhook.id order by webhook_delivery.id desc limit 1
  ) as webhook_delivery`;

/** Finds webhooks with a delivery that has waited $1 seconds. Their task neither runs nor is due within $1 seconds. */
export const FORGOTTEN_WEBHOOKS = statement({ id: column.text() })`
  select distinct webhook_id as id from webhook_delivery
  where status = 'PENDING' and created_at < now() - $1::float8 * interval '1 second'
    and not exists (
      select from task where subject = webhook_id and state = 'READY'
        and (leased_by is not null or run_at <= now() + $1::float8 * interval '1 second'))`;
