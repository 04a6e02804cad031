/** Webhooks of an account or of the operator, and their deliveries. */
import { In } from 'typeorm';
import { exists, find, insert, lock, remove } from '../entities/database/table.ts';
import type { Transaction } from '../entities/database/transaction.ts';
import { ApiError } from '../entities/errors.ts';
import { OPERATOR_ACCOUNT } from '../entities/history/audit.ts';
import { record } from '../entities/history/record.ts';
import { expression, transition } from '../entities/history/transition.ts';
import { isId, newId } from '../entities/ids.ts';
import { lockOperator } from '../entities/payments/ledger.ts';
import { type ExampleOf, exampleOfEvent, isGone, resourceOf } from '../entities/webhooks/body.ts';
import {
  DELETE_DELIVERIES,
  DELIVERY_LIFECYCLE,
  LATEST_DELIVERIES,
  REDELIVERIES_PER_MINUTE,
  SECONDS_TO_REDELIVERY,
  WebhookDelivery,
} from '../entities/webhooks/delivery.ts';
import { TOLD_EVENT_TYPES, TOLD_EVENTS } from '../entities/webhooks/events.ts';
import {
  EVENT_PATTERNS,
  FIND_WEBHOOK,
  isRevoked,
  PREVIOUS_WEBHOOK_SECRET,
  ROTATE_SECRET,
  WEBHOOK_SECRET,
  Webhook,
} from '../entities/webhooks/webhook.ts';
import { newWebhookSecret, type WebhookTest } from '../provisioning/index.ts';
import { lockOwnAccount, requireOpen, type WhileSuspended } from './accounts/account.ts';
import { newLimits } from './accounts/auth/inherited-limits.ts';
import { accountOf, actorOf, type Context, requireAccount } from './context.ts';
import { found, limitReached, nearest, shortened, suggestion } from './errors.ts';
import { type Page, type PageRequest, pageOfAccount } from './pages.ts';

export { DELIVERY_STATUSES } from '../entities/webhooks/delivery.ts';
export { WEBHOOK_STATUSES } from '../entities/webhooks/webhook.ts';
export type { WebhookTest };

/** A webhook with the delivery of its latest event. */
export type ShownWebhook = Webhook & { lastDelivery?: WebhookDelivery | null };
export interface CreatedWebhook {
  webhook: ShownWebhook;
  /** The caller cannot read it again. */
  secret: string;
}
interface NewWebhook {
  url: string;
  eventFilter: string[];
  description?: string | null | undefined;
}

/** The account of the caller's webhooks. Those of the operator get the events that concern the operator alone. */
const ownerOf = (context: Context): string =>
  context.viewer?.kind === 'operator' ? OPERATOR_ACCOUNT : accountOf(context);
async function lockOwner(tx: Transaction, context: Context, allowed?: WhileSuspended): Promise<void> {
  if (context.viewer?.kind !== 'operator') return void (await lockOwnAccount(tx, context, allowed));
  await lockOperator(tx);
  await requireOpen(tx, context);
}

/**
 * The schema has checked the addresses of the URL.
 * @throws ApiError unknown_event, invalid_url, url_not_allowed or webhook_limit_reached
 */
export async function createWebhook(
  context: Context,
  { url, eventFilter, description }: NewWebhook,
): Promise<CreatedWebhook> {
  const accountId = ownerOf(context);
  const unknown = eventFilter.find((pattern) => !EVENT_PATTERNS.includes(pattern));
  if (unknown !== undefined) throw unknownEvent(unknown);
  const parsedUrl = context.provisioning.webhooks.parse(url).href;
  const secret = newWebhookSecret();
  const id = newId('whk');
  const webhook = await context.db.transaction(async (tx) => {
    await lockOwner(tx, context);
    const { expiresAt, limitedBy } = newLimits(context, {});
    if ((await tx.manager.countBy(Webhook, { accountId })) >= context.limits.webhooks)
      throw limitReached('webhook_limit_reached', context.limits.webhooks);
    await insert(tx, Webhook, {
      id,
      accountId,
      url: parsedUrl,
      eventFilter: [...new Set(eventFilter)],
      description: description ?? null,
      secret: WEBHOOK_SECRET.seal(context.vault, secret, id),
      expiresAt,
      limitedBy,
    });
    await record(tx, accountId, id, { type: 'webhook.created', actor: actorOf(context) });
    const created = (await find(tx, Webhook, { id }))!;
    await context.provisioning.webhooks.expire(tx, created);
    return created;
  });
  return { webhook, secret };
}

/** The refusal names the events of the noun that the caller means, or else the groups. */
function unknownEvent(pattern: string): ApiError {
  const name = pattern.slice(0, 64);
  const groups = EVENT_PATTERNS.filter((one) => one.endsWith('.*') && TOLD_EVENT_TYPES.some((type) => isIn(one, type)));
  const group = groups.find((one) => isIn(one, name.toLowerCase()));
  const near = nearest(name, ['*', ...groups, ...TOLD_EVENT_TYPES]);
  const message = `There is no event "${shortened(name)}" for event_filter.${suggestion(near)}`;
  const known = group
    ? `The events of ${group} are ${TOLD_EVENT_TYPES.filter((type) => isIn(group, type)).join(', ')}.`
    : `A filter has names such as server.running, or groups: *, ${groups.join(', ')}.`;
  return new ApiError('unknown_event', `${message} ${known} See {ListWebhookEvents}.`, {
    errors: [{ field: 'event_filter', code: 'unknown_event', message }],
  });
}
/** Whether a group such as `server.*` has the event. */
const isIn = (group: string, type: string): boolean => type.startsWith(group.slice(0, -1));

/** An event that customers can hear, with its message. */
export interface ListedEvent {
  type: string;
  description: string;
  /** The type of the resource that the message shows; undefined if the resource is gone. */
  resource: string | undefined;
  /** The body of a message. */
  example: object;
}
/** The events that customers can hear. @param exampleOf returns the example of a type of resource */
export const toldEvents = (exampleOf: ExampleOf): ListedEvent[] =>
  TOLD_EVENT_TYPES.map((type) => {
    const told = TOLD_EVENTS[type]!;
    const resource = isGone(type) ? undefined : resourceOf(type);
    return { type, description: told.description, resource, example: exampleOfEvent(type, told, exampleOf) };
  });

export const listWebhookEvents = ({ provisioning }: Context): ListedEvent[] =>
  toldEvents(provisioning.webhooks.exampleOf);

/** The operator reads the webhooks of all accounts, or of one. @throws ApiError not_found for the account of somebody else */
export async function listWebhooks(
  context: Context,
  request: PageRequest,
  accountId: string | null | undefined,
): Promise<Page<ShownWebhook>> {
  requireAccount(context, accountId);
  const page = await pageOfAccount(context, Webhook, request, accountId ? { accountId } : {});
  const latest = await LATEST_DELIVERIES.all(context.db, [page.data.map(({ id }) => id)]);
  const byWebhook = new Map(latest.map((delivery) => [delivery.webhookId, delivery]));
  return {
    ...page,
    data: page.data.map((webhook) => ({ ...webhook, lastDelivery: byWebhook.get(webhook.id) ?? null })),
  };
}

/** Deletes a webhook and its deliveries. @throws ApiError not_found */
export async function deleteWebhook(context: Context, id: string): Promise<{ id: string; deleted: true }> {
  const accountId = ownerOf(context);
  if (!isId('whk', id)) throw new ApiError('not_found');
  return context.db.transaction(async (tx) => {
    await lockOwner(tx, context, 'while suspended');
    if (!(await remove(tx, Webhook, { id, accountId }))) throw new ApiError('not_found');
    await DELETE_DELIVERIES.all(tx, [id]);
    await record(tx, accountId, id, { type: 'webhook.deleted', actor: actorOf(context) });
    return { id, deleted: true };
  });
}

/** A webhook with its new secret. The caller cannot read the secret again. */
export interface RotatedWebhookSecret extends CreatedWebhook {
  /** Until then, the secret before it also signs. Null: that one was revoked. */
  previousSecretUntil: Date | null;
}

/**
 * Replaces the secret of a webhook. Both sign for a day, so that the receiver can change over. A webhook that a revocation
 * disabled works again.
 * @throws ApiError not_found, or insufficient_scope if the caller has limits and the webhook does not end with the caller
 */
export async function rotateWebhookSecret(context: Context, id: string): Promise<RotatedWebhookSecret> {
  const accountId = ownerOf(context);
  const { vault } = context;
  const secret = newWebhookSecret();
  return context.db.transaction(async (tx) => {
    await lockOwner(tx, context);
    const before = found(isId('whk', id) && (await lock(tx, Webhook, { id, accountId })));
    // The caller would know a secret that outlives the caller.
    // The first client of an agent has no limits of its own.
    const isOwn = before.limitedBy === context.inherited?.limitedBy && (!isRevoked(before) || context.viewer?.isLogin);
    if (context.inherited && !isOwn) throw ofTheOwner();
    const previous = isRevoked(before)
      ? null
      : PREVIOUS_WEBHOOK_SECRET.seal(vault, WEBHOOK_SECRET.open(vault, before.secret, id), id);
    const rotated = (await ROTATE_SECRET.first(tx, [id, WEBHOOK_SECRET.seal(vault, secret, id), previous]))!;
    const actor = actorOf(context);
    await record(tx, accountId, id, { type: 'webhook.secret_rotated', actor });
    const enabled = isRevoked(before) && (await context.provisioning.webhooks.enable(tx, before, actor));
    const webhook = enabled || rotated;
    const [lastDelivery = null] = await LATEST_DELIVERIES.all(tx, [[id]]);
    return { webhook: { ...webhook, lastDelivery }, secret, previousSecretUntil: webhook.previousSecretUntil };
  });
}

const ofTheOwner = () =>
  new ApiError(
    'insufficient_scope',
    'A credential with limits replaces the secret only of an enabled webhook that it created. Use one without limits.',
  );

/** Sends a test message. A failed delivery is a result and no error. @throws ApiError not_found, or validation_failed if it expired, or a revocation disabled it */
export async function testWebhook(context: Context, id: string): Promise<WebhookTest> {
  const accountId = ownerOf(context);
  const webhook = found(isId('whk', id) && (await FIND_WEBHOOK.first(context.db, [id])));
  if (webhook.accountId !== accountId) throw new ApiError('not_found');
  await requireOpen(context.db, context);
  if (webhook.secondsLeft !== null && webhook.secondsLeft <= 0)
    throw new ApiError('validation_failed', 'The webhook has expired. Create a new one by {CreateWebhook}.');
  if (isRevoked(webhook))
    throw new ApiError('validation_failed', `A revocation disabled the webhook. {RotateWebhookSecret} enables it.`);
  return context.provisioning.webhooks.test(webhook, actorOf(context));
}

/** Returns the deliveries to one webhook or to all, newest first. @throws ApiError not_found */
export async function listWebhookDeliveries(
  context: Context,
  request: PageRequest,
  filter: { webhookId?: string | null | undefined; status?: readonly WebhookDelivery['status'][] | null | undefined },
): Promise<Page<WebhookDelivery>> {
  const { webhookId, status } = filter;
  const isNamed = typeof webhookId === 'string';
  if (isNamed) {
    const own = context.viewer?.accountId && { accountId: context.viewer.accountId };
    found(isId('whk', webhookId) && (await exists(context.db, Webhook, { id: webhookId, ...own })));
  }
  return pageOfAccount(context, WebhookDelivery, request, {
    ...(isNamed && { webhookId }),
    ...(status?.length && { status: In([...status]) }),
  });
}

/**
 * Repeats a delivery that has ended, with fresh attempts. The message keeps its id.
 * @param webhookId the webhook that the caller means. Default: that of the delivery
 * @throws ApiError not_found, validation_failed while the webhook is disabled, or rate_limited
 */
export async function redeliver(
  context: Context,
  id: string,
  webhookId: string | null | undefined,
): Promise<WebhookDelivery> {
  const missing = `There is no delivery_id "${shortened(id)}". See {ListWebhookDeliveries}.`;
  const own = context.viewer!.accountId && { accountId: context.viewer!.accountId };
  return context.db.transaction(async (tx) => {
    await requireOpen(tx, context);
    const named = found(isId('dlv', id) && (await find(tx, WebhookDelivery, { id, ...own })), missing);
    // The lock of the webhook makes concurrent repetitions count each other.
    const webhook = found(
      (webhookId ?? named.webhookId) === named.webhookId && (await lock(tx, Webhook, { id: named.webhookId })),
      missing,
    );
    const delivery = found(await lock(tx, WebhookDelivery, { id }), missing);
    if (webhook.status !== 'ENABLED')
      throw new ApiError(
        'validation_failed',
        'The webhook is disabled. A {TestWebhook} that succeeds enables it again.',
      );
    if (delivery.nextAttemptAt) return delivery;
    const wait = await SECONDS_TO_REDELIVERY.first(tx, [webhook.id, id]);
    if (wait) throw tooOften(wait.seconds);
    const again = await transition(tx, DELIVERY_LIFECYCLE, id, 'PENDING', {
      set: {
        attempts: 0,
        firstAttemptAt: null,
        nextAttemptAt: expression('now()'),
        redeliveredAt: expression('now()'),
      },
    });
    await context.provisioning.webhooks.wake(tx, webhook);
    return again ?? delivery;
  });
}

const tooOften = (seconds: number) =>
  new ApiError(
    'rate_limited',
    `A webhook repeats ${REDELIVERIES_PER_MINUTE} deliveries a minute, and each delivery once a minute. Wait for retry_after.`,
    { retryAfter: Math.max(1, Math.ceil(seconds)) },
  );
