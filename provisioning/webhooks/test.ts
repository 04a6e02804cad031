/** Tests of webhooks: one message that is sent at once. */
import { READ_STANDING } from '../../entities/accounts/credential.ts';
import { snake } from '../../entities/database/table.ts';
import type { Actor } from '../../entities/history/audit.ts';
import { record } from '../../entities/history/record.ts';
import { newId } from '../../entities/ids.ts';
import { lockAccount } from '../../entities/payments/ledger.ts';
import { INSERT_TEST_DELIVERY } from '../../entities/webhooks/delivery.ts';
import { MARK_SUCCESS, type Webhook } from '../../entities/webhooks/webhook.ts';
import { type DeliveryOptions, send } from './deliver.ts';
import type { Posted } from './post.ts';
import { enableWebhook } from './resume.ts';

const TIMEOUT_SECONDS = 10;

export interface WebhookTest extends Pick<Posted, 'responseStatus' | 'durationMs' | 'error'> {
  delivered: boolean;
  eventId: string;
}

/**
 * Sends `webhook.test` once and ignores the filter. A success enables a webhook that was disabled before. It does
 * not if the webhook changed, or the caller lost the power, during the test.
 */
export async function testWebhook(options: DeliveryOptions, webhook: Webhook, actor: Actor): Promise<WebhookTest> {
  const { id, accountId } = webhook;
  const { db } = options;
  const eventId = await db.transaction((tx) => record(tx, accountId, id, { type: 'webhook.test', actor }));
  const shown = Object.entries({ ...webhook, secret: null, previousSecret: null });
  const snapshot = Object.fromEntries(shown.map(([property, value]) => [snake(property), value]));
  const { responseStatus, durationMs, error } = await send(
    options,
    webhook,
    { accountId, eventId, snapshot },
    { timeoutSeconds: TIMEOUT_SECONDS },
  );
  const delivered = error === null;
  await db.transaction(async (tx) => {
    await lockAccount(tx, accountId);
    const status = delivered ? 'SUCCEEDED' : 'FAILED';
    await INSERT_TEST_DELIVERY.all(tx, [id, newId('dlv'), eventId, status, responseStatus, durationMs, error]);
    if (!delivered) return;
    await MARK_SUCCESS.all(tx, [id]);
    const { open, suspendedFor } = (await READ_STANDING.first(tx, [actor.id, accountId]))!;
    const mayEnable = actor.type === 'operator' || (open && suspendedFor === null);
    if (webhook.status === 'DISABLED' && mayEnable) await enableWebhook(tx, webhook, actor);
  });
  return { delivered, eventId, responseStatus, durationMs, error };
}
