/** Webhooks of an account, and what was delivered to them. */

import { columnsOf } from '../entities/database/table.ts';
import { ApiError } from '../entities/errors.ts';
import { record } from '../entities/history/record.ts';
import { isId, newId } from '../entities/ids.ts';
import { lockAccount } from '../entities/payments/ledger.ts';
import { isEventPattern, Webhook, WebhookDelivery, webhookSecretContext } from '../entities/webhooks/webhook.ts';
import { newWebhookSecret, type WebhookTest } from '../provisioning/index.ts';
import { accountOf, actorOf, type Context } from './context.ts';
import { type Page, type PageRequest, pageOfAccount } from './pages.ts';

export { DELIVERY_STATUSES, WEBHOOK_STATUSES } from '../entities/webhooks/webhook.ts';
export type { WebhookTest };

/** A webhook and what was last sent to it. */
export type ShownWebhook = Webhook & { lastDelivery?: WebhookDelivery | null };
export interface CreatedWebhook {
  webhook: ShownWebhook;
  /** Cannot be read again. */
  secret: string;
}
interface NewWebhook {
  url: string;
  eventFilter: string[];
  description?: string | null | undefined;
}

/** @throws ApiError unknown_event, invalid_url, url_not_allowed or webhook_limit_reached */
export async function createWebhook(
  context: Context,
  { url, eventFilter, description }: NewWebhook,
): Promise<CreatedWebhook> {
  const accountId = accountOf(context);
  const unknown = eventFilter.find((pattern) => !isEventPattern(pattern));
  if (unknown !== undefined) throw unknownEvent();
  const checkedUrl = await context.provisioning.webhooks.check(url);
  const secret = newWebhookSecret();
  const id = newId('whk');
  const webhook = await context.db.transaction(async (tx) => {
    await lockAccount(tx, accountId);
    if ((await tx.manager.countBy(Webhook, { accountId })) >= context.limits.webhooks)
      throw new ApiError('webhook_limit_reached');
    await tx.manager.insert(Webhook, {
      id,
      accountId,
      url: checkedUrl,
      eventFilter: [...new Set(eventFilter)],
      description: description ?? null,
      secret: context.vault.seal(secret, webhookSecretContext(id)),
    });
    await record(tx, accountId, id, { type: 'webhook.created', actor: actorOf(context) });
    return tx.manager.findOneByOrFail(Webhook, { id });
  });
  return { webhook, secret };
}

const unknownEvent = () =>
  new ApiError(
    'unknown_event',
    'A filter has names of events, such as server.running, groups such as server.*, or *.',
    {
      errors: [
        { field: 'event_filter', code: 'unknown_event', message: 'event_filter names an event that there is not.' },
      ],
    },
  );

export async function listWebhooks(context: Context, request: PageRequest): Promise<Page<ShownWebhook>> {
  const page = await pageOfAccount(context, Webhook, request);
  const latest = await context.db.query<WebhookDelivery>(LATEST, [page.data.map(({ id }) => id)]);
  const byWebhook = new Map(latest.map((delivery) => [delivery.webhookId, delivery]));
  return {
    ...page,
    data: page.data.map((webhook) => ({ ...webhook, lastDelivery: byWebhook.get(webhook.id) ?? null })),
  };
}
const LATEST = `
  select webhook_delivery.* from unnest($1::text[]) as webhook (id) cross join lateral (
    select ${columnsOf(WebhookDelivery)} from webhook_delivery where webhook_id = webhook.id order by webhook_delivery.id desc limit 1
  ) as webhook_delivery`;

/** What was still to be delivered is dropped with it. @throws ApiError not_found */
export async function deleteWebhook(context: Context, id: string): Promise<{ id: string; deleted: true }> {
  const accountId = accountOf(context);
  if (!isId('whk', id)) throw new ApiError('not_found');
  return context.db.transaction(async (tx) => {
    const { affected } = await tx.manager.delete(Webhook, { id, accountId });
    if (!affected) throw new ApiError('not_found');
    await tx.query(
      `with dropped as (select id from webhook_delivery where webhook_id = $1 order by id for update)
        delete from webhook_delivery using dropped where webhook_delivery.id = dropped.id`,
      [id],
    );
    await record(tx, accountId, id, { type: 'webhook.deleted', actor: actorOf(context) });
    return { id, deleted: true };
  });
}

/** @throws ApiError not_found; not if the target failed, which is an answer */
export async function testWebhook(context: Context, id: string): Promise<WebhookTest> {
  const accountId = accountOf(context);
  const webhook = isId('whk', id) && (await context.db.source.manager.findOneBy(Webhook, { id, accountId }));
  if (!webhook) throw new ApiError('not_found');
  return context.provisioning.webhooks.test(webhook, actorOf(context));
}

/** The deliveries to one webhook or to all, newest first. */
export async function listWebhookDeliveries(
  context: Context,
  request: PageRequest,
  {
    webhookId,
    status,
  }: { webhookId?: string | null | undefined; status?: WebhookDelivery['status'] | null | undefined },
): Promise<Page<WebhookDelivery>> {
  if (webhookId && !isId('whk', webhookId)) throw new ApiError('not_found');
  return pageOfAccount(context, WebhookDelivery, request, {
    ...(webhookId && { webhookId }),
    ...(status && { status }),
  });
}

/**
 * Delivers once more what is over, with all attempts. The message keeps its id.
 * @throws ApiError not_found, or validation_failed while the webhook is disabled
 */
export async function redeliver(context: Context, id: string): Promise<WebhookDelivery> {
  if (!isId('dlv', id)) throw new ApiError('not_found');
  const where = { id, ...(context.viewer!.accountId && { accountId: context.viewer!.accountId }) };
  return context.db.transaction(async (tx) => {
    const delivery = await tx.manager.findOne(WebhookDelivery, { where, lock: { mode: 'pessimistic_write' } });
    if (!delivery) throw new ApiError('not_found');
    const webhook = await tx.manager.findOneBy(Webhook, { id: delivery.webhookId });
    if (webhook?.status !== 'ENABLED')
      throw new ApiError('validation_failed', 'The webhook is disabled. A test that succeeds enables it again.');
    if (delivery.nextAttemptAt === null) {
      await tx.query(
        `update webhook_delivery set status = 'PENDING', attempts = 0, first_attempt_at = null, next_attempt_at = now() where id = $1`,
        [id],
      );
    }
    await context.provisioning.webhooks.wake(tx, webhook);
    return tx.manager.findOneByOrFail(WebhookDelivery, { id });
  });
}
