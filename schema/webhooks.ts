/** Webhooks: register, list, delete and test them; list and repeat their deliveries. */
import type { WebhookDelivery } from '../entities/webhooks/delivery.ts';
import {
  type CreatedWebhook,
  createWebhook,
  DELIVERY_STATUSES,
  deleteWebhook,
  type ListedEvent,
  listWebhookDeliveries,
  listWebhookEvents,
  listWebhooks,
  type RotatedWebhookSecret,
  redeliver,
  rotateWebhookSecret,
  type ShownWebhook,
  testWebhook,
  WEBHOOK_STATUSES,
  type WebhookTest,
} from '../resolvers/webhooks.ts';
import { Deleted } from './accounts/ssh-keys.ts';
import { builder, enumType, inputType, objectType, STEP_UP } from './builder.ts';
import { listOf, pageArgs, pageOf } from './pages.ts';

const WebhookStatus = enumType(
  'WebhookStatus',
  'A disabled webhook receives no events until a test succeeds. After a revocation, it needs a new secret.',
  WEBHOOK_STATUSES,
);
const DeliveryStatus = enumType('DeliveryStatus', 'Succeeded and failed deliveries have ended.', DELIVERY_STATUSES);

const DeliveryType = objectType<WebhookDelivery>('WebhookDelivery', 'One event on its way to one webhook.', (t) => ({
  id: t.exposeID('id', { description: 'The id of the delivery.' }),
  eventId: t.exposeID('eventId', { description: 'The webhook-id of the message, the same at every attempt.' }),
  eventType: t.exposeString('eventType', { description: 'Such as server.running.' }),
  status: t.expose('status', { type: DeliveryStatus, description: 'retrying: the receiver refused it, or was away.' }),
  attempts: t.exposeInt('attempts', { description: 'Attempts that have ended.' }),
  responseStatus: t.exposeInt('responseStatus', { nullable: true, description: 'The HTTP status of the last answer.' }),
  durationMs: t.exposeInt('durationMs', {
    nullable: true,
    description: 'The duration of the last attempt, rounded up.',
  }),
  error: t.exposeString('error', {
    nullable: true,
    description: 'refused_address, dns, tls, unreachable, http_status, disabled or too_many_waiting.',
  }),
  nextAttemptAt: t.expose('nextAttemptAt', { type: 'DateTime', nullable: true, description: 'Null at the end.' }),
  createdAt: t.expose('createdAt', { type: 'DateTime' }),
}));

const WebhookType = objectType<ShownWebhook>('Webhook', 'A URL that receives events.', (t) => ({
  id: t.exposeID('id', { description: 'The id of the webhook.' }),
  url: t.exposeString('url', { description: 'The receiver.' }),
  eventFilter: t.string({
    description: 'The events that it receives: *, groups such as server.*, or names, with commas.',
    resolve: ({ eventFilter }) => eventFilter.join(','),
  }),
  description: t.exposeString('description', { nullable: true, description: 'The note that its owner gave it.' }),
  status: t.expose('status', {
    type: WebhookStatus,
    description: 'The service disables it after ten failed deliveries in a row.',
  }),
  disabledReason: t.exposeString('disabledReason', {
    nullable: true,
    description:
      'endpoint_gone, retries_exhausted, expired, creator_revoked or secret_revoked; null while it is enabled.',
  }),
  createdAt: t.expose('createdAt', { type: 'DateTime' }),
  expiresAt: t.expose('expiresAt', {
    type: 'DateTime',
    nullable: true,
    description: 'When it stops: the expiry of the credential that created it.',
  }),
  lastDelivery: t.field({
    type: DeliveryType,
    nullable: true,
    description: 'The delivery of the latest event.',
    resolve: ({ lastDelivery }) => lastDelivery ?? null,
  }),
}));
const CreatedWebhookType = objectType<CreatedWebhook>(
  'CreatedWebhook',
  'A new webhook, and the secret that signs its messages.',
  (t) => ({
    webhook: t.expose('webhook', { type: WebhookType }),
    secret: t.exposeString('secret', {
      description: 'The secret for Standard Webhooks. The service shows it only here.',
    }),
  }),
);
const RotatedWebhookSecretType = objectType<RotatedWebhookSecret>(
  'RotatedWebhookSecret',
  'A webhook with a new secret.',
  (t) => ({
    webhook: t.expose('webhook', { type: WebhookType }),
    secret: t.exposeString('secret', { description: 'The new secret. The service shows it only here.' }),
    previousSecretUntil: t.expose('previousSecretUntil', {
      type: 'DateTime',
      nullable: true,
      description: 'When the secret before it stops signing. Null: it was revoked.',
    }),
  }),
);
const WebhookTestType = objectType<WebhookTest>('WebhookTest', 'The result of a test.', (t) => ({
  delivered: t.exposeBoolean('delivered', { description: 'Whether the receiver answered with 2xx.' }),
  eventId: t.exposeID('eventId', { description: 'The webhook-id of the test message.' }),
  responseStatus: t.exposeInt('responseStatus', {
    nullable: true,
    description: 'The HTTP status of the answer; null: there was none.',
  }),
  durationMs: t.exposeInt('durationMs', { description: 'Rounded up to a step from 100 to 10,000.' }),
  error: t.exposeString('error', {
    nullable: true,
    description: 'refused_address, dns, tls, unreachable or http_status.',
  }),
}));
const WebhookEventType = objectType<ListedEvent>(
  'WebhookEvent',
  'A type of event that a webhook can receive.',
  (t) => ({
    type: t.exposeString('type', { description: 'Its name for event_filter, such as server.running.' }),
    description: t.exposeString('description', { description: 'The change, as a sentence.' }),
    example: t.expose('example', { type: 'JSON', description: 'The body of a message, with example values.' }),
  }),
);
const WebhookEventPage = pageOf('WebhookEvent', WebhookEventType);
const WebhookPage = pageOf('Webhook', WebhookType);
const DeliveryPage = pageOf('WebhookDelivery', DeliveryType);

const CreateWebhookInput = inputType('CreateWebhookInput', (t) => ({
  url: t.field({ type: 'WebhookUrl', required: true, description: 'An https URL at a public address.' }),
  eventFilter: t.field({
    type: 'EventFilter',
    required: true,
    defaultValue: ['*'],
    description: '*, groups such as server.*, or names such as topup.confirmed.',
  }),
  description: t.field({ type: 'WebhookDescription', description: 'A note for people.' }),
  totpCode: t.field({ type: 'TotpCode', description: STEP_UP }),
}));
const RotateWebhookSecretInput = inputType('RotateWebhookSecretInput', (t) => ({
  totpCode: t.field({ type: 'TotpCode', description: STEP_UP }),
}));
const idArg = { type: 'ID', required: true, description: 'The id of the webhook.' } as const;

builder.queryFields((t) => ({
  webhooks: t.field({
    type: WebhookPage,
    scope: 'read',
    description: 'The webhooks of the account, newest first.',
    args: {
      ...pageArgs(),
      accountId: t.arg({
        type: 'ID',
        description:
          'For the operator: only webhooks of this account. Those of the operator have the account operator.',
      }),
    },
    resolve: (_, { accountId, ...page }, context) => listWebhooks(context, page, accountId),
  }),
  webhookEvents: t.field({
    type: WebhookEventPage,
    scope: 'public',
    description: 'The events that a webhook can receive.',
    resolve: (_, __, context) => listOf(listWebhookEvents(context)),
  }),
  webhookDeliveries: t.field({
    type: DeliveryPage,
    scope: 'read',
    description:
      'Deliveries, newest first. The service keeps the 1,000 newest ended ones of each webhook, for a month.',
    args: {
      ...pageArgs(),
      webhookId: t.arg({ type: 'ID', description: 'Only deliveries to this webhook.' }),
      status: t.arg({ type: [DeliveryStatus], description: 'Only deliveries in these states.' }),
    },
    resolve: (_, { webhookId, status, ...page }, context) =>
      listWebhookDeliveries(context, page, { webhookId, status }),
  }),
}));

builder.mutationFields((t) => ({
  createWebhook: t.field({
    type: CreatedWebhookType,
    scope: 'full',
    errors: ['unknown_event', 'invalid_url', 'url_not_allowed', 'webhook_limit_reached'],
    creates: 'webhook',
    description: 'Registers a URL that receives events.',
    args: { input: t.arg({ type: CreateWebhookInput, required: true }) },
    outside: ({ input }, { provisioning }) => provisioning.webhooks.check(input.url),
    resolve: (_, { input }, context) => createWebhook(context, input),
  }),
  deleteWebhook: t.field({
    type: Deleted,
    scope: 'full',
    whileSuspended: true,
    description: 'Deletes a webhook and its deliveries.',
    args: { id: t.arg(idArg) },
    resolve: (_, { id }, context) => deleteWebhook(context, id),
  }),
  rotateWebhookSecret: t.field({
    type: RotatedWebhookSecretType,
    scope: 'full',
    creates: 'webhook',
    description:
      'Replaces the secret of a webhook. Both secrets sign for 24 hours. Enables one that a revocation disabled.',
    args: { id: t.arg(idArg), input: t.arg({ type: RotateWebhookSecretInput }) },
    resolve: (_, { id }, context) => rotateWebhookSecret(context, id),
  }),
  testWebhook: t.field({
    type: WebhookTestType,
    scope: 'full',
    description: 'Sends webhook.test now, once. A success enables a disabled webhook.',
    args: { id: t.arg(idArg) },
    resolve: (_, { id }, context) => testWebhook(context, id),
  }),
  redeliver: t.field({
    type: DeliveryType,
    scope: 'full',
    description:
      'Delivers an event again, with fresh attempts. A delivery repeats once a minute, and a webhook sixty times.',
    args: {
      id: t.arg({ type: 'ID', required: true, description: 'The id of the delivery.' }),
      webhookId: t.arg({ type: 'ID', description: 'The id of its webhook.' }),
    },
    resolve: (_, { id, webhookId }, context) => redeliver(context, id, webhookId),
  }),
}));
