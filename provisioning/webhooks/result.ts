/** The consequences of an attempt: another attempt or the end of the delivery, and perhaps a disabled webhook. */
import type { Transaction } from '../../entities/database/transaction.ts';
import { SYSTEM } from '../../entities/history/audit.ts';
import { record } from '../../entities/history/record.ts';
import { expression, transition, transitionWhere } from '../../entities/history/transition.ts';
import {
  DELIVERY_LIFECYCLE,
  LOCK_OPEN_DELIVERIES,
  OPEN_DELIVERIES,
  type WebhookDelivery,
} from '../../entities/webhooks/delivery.ts';
import { MARK_SUCCESS, NO_SUCCESS_SINCE, WEBHOOK_LIFECYCLE, type Webhook } from '../../entities/webhooks/webhook.ts';
import type { Posted } from './post.ts';

const MINUTE = 60;
const HOUR = 3600;
/** Pauses between ten attempts, as Standard Webhooks proposes. */
export const RETRY_SECONDS = [
  5,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  14 * HOUR,
  20 * HOUR,
  24 * HOUR,
];
const JITTER = 0.2;
const RETRY_AFTER_SECONDS_MAX = 24 * HOUR;
const GONE = 410;

export interface Result {
  delivery: WebhookDelivery;
  posted: Posted;
}

/** Returns the pause after so many attempts, or undefined after the last. */
export function pauseSeconds(attempts: number, retryAfterSeconds: number | null = null): number | undefined {
  const pause = RETRY_SECONDS[attempts - 1];
  if (pause === undefined) return undefined;
  const jittered = pause * (1 - JITTER + Math.random() * 2 * JITTER);
  return Math.max(jittered, Math.min(retryAfterSeconds ?? 0, RETRY_AFTER_SECONDS_MAX));
}

/** Writes the results of attempts. It writes a success first, because a success can keep the webhook enabled. */
export async function keepResults(tx: Transaction, webhook: Webhook, results: readonly Result[]): Promise<void> {
  if (results.some(({ posted }) => posted.error === null)) await MARK_SUCCESS.all(tx, [webhook.id]);
  const reason = endOf(results);
  // The order of locks: first the webhook, then its deliveries by id.
  const disabled = reason !== undefined && (await disable(tx, webhook, reason, results));
  if (disabled) await LOCK_OPEN_DELIVERIES.all(tx, [webhook.id]);
  for (const { delivery, posted } of results.toSorted((a, b) => (a.delivery.id < b.delivery.id ? -1 : 1))) {
    const failed = posted.error !== null && posted.responseStatus !== GONE;
    const pause = failed ? pauseSeconds(delivery.attempts + 1, posted.retryAfterSeconds) : undefined;
    await writeAttempt(tx, delivery.id, posted, pause);
  }
  if (disabled) await stopDeliveries(tx, webhook.id);
}

/** Returns the reason to disable the webhook, if the results give one. */
function endOf(results: readonly Result[]): 'endpoint_gone' | 'retries_exhausted' | undefined {
  if (results.some(({ posted }) => posted.responseStatus === GONE)) return 'endpoint_gone';
  const isLast = ({ delivery, posted }: Result) => posted.error && pauseSeconds(delivery.attempts + 1) === undefined;
  return results.some(isLast) ? 'retries_exhausted' : undefined;
}

const writeAttempt = (
  tx: Transaction,
  id: string,
  { responseStatus, durationMs, error }: Posted,
  pause: number | undefined,
) =>
  transition(tx, DELIVERY_LIFECYCLE, id, error === null ? 'SUCCEEDED' : pause === undefined ? 'FAILED' : 'RETRYING', {
    set: {
      attempts: expression('attempts + 1'),
      responseStatus,
      durationMs,
      error,
      nextAttemptAt: pause === undefined ? null : expression(`now() + ${pause} * interval '1 second'`),
    },
  });

/**
 * Disables a webhook. Retries that are exhausted disable it only if no delivery succeeded since the first attempt of a
 * failed one.
 * @returns whether the webhook was enabled and is disabled now
 */
async function disable(
  tx: Transaction,
  { id, accountId }: Webhook,
  reason: string,
  results: readonly Result[],
): Promise<boolean> {
  const failedSince = results
    .filter(({ delivery, posted }) => posted.error && pauseSeconds(delivery.attempts + 1) === undefined)
    .map(({ delivery }) => delivery.firstAttemptAt?.getTime() ?? 0);
  const [disabled] = await transitionWhere(tx, WEBHOOK_LIFECYCLE, 'DISABLED', NO_SUCCESS_SINCE, {
    parameters: [id, reason === 'endpoint_gone', new Date(Math.max(0, ...failedSince))],
    set: { disabledReason: reason },
  });
  if (!disabled) return false;
  await record(tx, accountId, id, {
    type: 'webhook.disabled',
    actor: SYSTEM,
    data: { disabled_reason: reason },
  });
  return true;
}

/** Ends the open deliveries of a disabled webhook. The customer can have them repeated. */
export const stopDeliveries = (tx: Transaction, webhookId: string): Promise<unknown> =>
  transitionWhere(tx, DELIVERY_LIFECYCLE, 'FAILED', OPEN_DELIVERIES, {
    parameters: [webhookId],
    set: { error: expression(`coalesce(error, 'disabled')`), nextAttemptAt: null },
  });
