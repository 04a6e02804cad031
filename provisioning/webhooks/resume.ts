/** Enables disabled webhooks, and wakes the process of a webhook. */
import type { Transaction } from '../../entities/database/transaction.ts';
import type { Actor } from '../../entities/history/audit.ts';
import { record } from '../../entities/history/record.ts';
import { WEBHOOK_LANE } from '../../entities/tasks/lane.ts';
import { startTask } from '../../entities/tasks/start.ts';
import { ENABLE_WEBHOOK } from '../../entities/webhooks/delivery.ts';
import { DELIVER_STEP, WEBHOOK_PROCESS, type Webhook } from '../../entities/webhooks/webhook.ts';

/**
 * Enables a webhook, if it is still disabled for the same reason and has not expired. Records that.
 * @returns the enabled webhook, or undefined
 */
export async function enableWebhook(
  tx: Transaction,
  { id, accountId, disabledReason }: Pick<Webhook, 'id' | 'accountId' | 'disabledReason'>,
  actor: Actor,
): Promise<Webhook | undefined> {
  const enabled = await ENABLE_WEBHOOK.first(tx, [id, disabledReason]);
  if (!enabled) return undefined;
  await record(tx, accountId, id, { type: 'webhook.enabled', actor });
  // The process of a disabled webhook has ended, and would miss the expiry.
  await wakeWebhook(tx, enabled);
  return enabled;
}

/** Lets a worker look for due deliveries. */
export const wakeWebhook = (
  tx: Transaction,
  { id, accountId }: Pick<Webhook, 'id' | 'accountId'>,
  afterSeconds = 0,
): Promise<void> =>
  startTask(tx, {
    lane: WEBHOOK_LANE,
    process: WEBHOOK_PROCESS,
    subject: id,
    accountId,
    step: DELIVER_STEP,
    afterSeconds,
  });
