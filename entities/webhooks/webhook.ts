/** Webhooks: where an account wants to be told of events, and what became of telling it. */
import {
  bytes,
  defaulting,
  entity,
  int,
  json,
  key,
  now,
  nullable,
  oneOf,
  type RowOf,
  text,
  textArray,
  timestamp,
} from '../database/table.ts';
import { EVENT_TYPES } from '../history/event.ts';

export const WEBHOOK_STATUSES = ['ENABLED', 'DISABLED'] as const;

export const Webhook = entity(
  'webhook',
  {
    id: key(),
    accountId: text(),
    /** As the URL parser prints it. */
    url: text(),
    /** `*`, `server.*` or exact names. */
    eventFilter: textArray(),
    description: nullable(text()),
    /** `whsec_…`, sealed for `webhookSecretContext`. */
    secret: bytes(),
    status: defaulting(oneOf(...WEBHOOK_STATUSES), "'ENABLED'"),
    /** `endpoint_gone` or `retries_exhausted`. */
    disabledReason: nullable(text()),
    lastSuccessAt: nullable(timestamp()),
    createdAt: now(),
  },
  [{ name: 'webhook_account', columns: ['accountId', 'id'] }],
);
export type Webhook = RowOf<typeof Webhook>;

export const DELIVERY_STATUSES = ['PENDING', 'DELIVERING', 'RETRYING', 'SUCCEEDED', 'FAILED'] as const;

export const WebhookDelivery = entity(
  'webhook_delivery',
  {
    id: key(),
    accountId: text(),
    webhookId: text(),
    eventId: text(),
    eventType: text(),
    /** The row that the event is about as the change left it, without secrets; null where the event's writer has none. */
    snapshot: nullable(json<Record<string, unknown>>()),
    status: defaulting(oneOf(...DELIVERY_STATUSES), "'PENDING'"),
    attempts: defaulting(int(), 0),
    responseStatus: nullable(int()),
    durationMs: nullable(int()),
    /** Of a fixed vocabulary; nothing of what the receiver says. */
    error: nullable(text()),
    firstAttemptAt: nullable(timestamp()),
    /** Null once it is over. While it is under way it is in the past, so that another worker takes it over. */
    nextAttemptAt: nullable(timestamp()),
    createdAt: now(),
  },
  [
    { name: 'webhook_delivery_account', columns: ['accountId', 'id'] },
    { name: 'webhook_delivery_webhook', columns: ['webhookId', 'id'] },
    { name: 'webhook_delivery_due', columns: ['webhookId', 'nextAttemptAt'], where: `next_attempt_at is not null` },
    { name: 'webhook_delivery_pending', columns: ['createdAt', 'webhookId'], where: `status = 'PENDING'` },
  ],
);
export type WebhookDelivery = RowOf<typeof WebhookDelivery>;

export const WEBHOOK_LANE = 'webhooks';
export const WEBHOOK_PROCESS = 'webhook';
/** The step of the process that sends what is due. */
export const DELIVER_STEP = 'deliver';

/** What the secret of a webhook is sealed for. */
export const webhookSecretContext = (id: string): string => `webhook.secret:${id}`;

/** The names that a filter may have: everything, all events of a noun, or one event. */
export const isEventPattern = (pattern: string): boolean =>
  pattern === '*' ||
  (EVENT_TYPES as readonly string[]).includes(pattern) ||
  (pattern.endsWith('.*') && EVENT_TYPES.some((type) => type.startsWith(pattern.slice(0, -1))));
