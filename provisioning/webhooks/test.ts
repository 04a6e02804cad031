/** A test call: one message, now. */

import { snake } from '../../entities/database/table.ts';
import type { Actor } from '../../entities/history/audit.ts';
import { record } from '../../entities/history/record.ts';
import { newId } from '../../entities/ids.ts';
import type { Webhook } from '../../entities/webhooks/webhook.ts';
import { type DeliveryOptions, send } from './deliver.ts';
import type { Posted } from './post.ts';
import { markSuccess } from './result.ts';

const TIMEOUT_SECONDS = 10;

export interface WebhookTest extends Pick<Posted, 'responseStatus' | 'durationMs' | 'error'> {
  delivered: boolean;
  eventId: string;
}

/** Sends `webhook.test` once, whatever the filter says. A success enables the webhook again. */
export async function testWebhook(options: DeliveryOptions, webhook: Webhook, actor: Actor): Promise<WebhookTest> {
  const { id, accountId } = webhook;
  const { db } = options;
  const eventId = await db.transaction((tx) => record(tx, accountId, id, { type: 'webhook.test', actor }));
  const shown = Object.entries({ ...webhook, secret: null });
  const snapshot = Object.fromEntries(shown.map(([property, value]) => [snake(property), value]));
  const { responseStatus, durationMs, error } = await send(
    options,
    webhook,
    { accountId, eventId, snapshot },
    { timeoutSeconds: TIMEOUT_SECONDS },
  );
  const delivered = error === null;
  await db.transaction(async (tx) => {
    const status = delivered ? 'SUCCEEDED' : 'FAILED';
    // Nothing is written of a webhook that was deleted meanwhile.
    await tx.query(
      `insert into webhook_delivery (id, account_id, webhook_id, event_id, event_type, status, attempts, response_status, duration_ms, error)
        select $2, account_id, id, $3, 'webhook.test', $4, 1, $5, $6, $7 from webhook where id = $1`,
      [id, newId('dlv'), eventId, status, responseStatus, durationMs, error],
    );
    if (!delivered) return;
    await markSuccess(tx, id);
    await tx.query(`update webhook set status = 'ENABLED', disabled_reason = null where id = $1`, [id]);
  });
  return { delivered, eventId, responseStatus, durationMs, error };
}
