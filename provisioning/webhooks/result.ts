/** What follows from an attempt: the next one, or the end; for the webhook perhaps that it is disabled. */

import type { Transaction } from '../../entities/database/transaction.ts';
import { SYSTEM } from '../../entities/history/audit.ts';
import { record } from '../../entities/history/record.ts';
import type { Webhook, WebhookDelivery } from '../../entities/webhooks/webhook.ts';
import type { Posted } from './post.ts';

const MINUTE = 60;
const HOUR = 3600;
/** The pauses between ten attempts, as Standard Webhooks proposes. */
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

/** How long to wait after so many attempts, or undefined after the last. */
export function pauseSeconds(attempts: number, retryAfterSeconds: number | null = null): number | undefined {
  const pause = RETRY_SECONDS[attempts - 1];
  if (pause === undefined) return undefined;
  const jittered = pause * (1 - JITTER + Math.random() * 2 * JITTER);
  return Math.max(jittered, Math.min(retryAfterSeconds ?? 0, RETRY_AFTER_SECONDS_MAX));
}

/** Writes what became of attempts. The successes first: they keep the webhook from being disabled by the others. */
export async function keepResults(tx: Transaction, webhook: Webhook, results: readonly Result[]): Promise<void> {
  if (results.some(({ posted }) => posted.error === null)) await markSuccess(tx, webhook.id);
  const reason = endOf(results);
  // The webhook is locked before its deliveries, and these in the order of their ids.
  const disabled = reason !== undefined && (await disable(tx, webhook, reason, results));
  if (disabled) await tx.query(`select ${OPEN_DELIVERIES}`, [webhook.id]);
  for (const { delivery, posted } of results.toSorted((a, b) => (a.delivery.id < b.delivery.id ? -1 : 1))) {
    const failed = posted.error !== null && posted.responseStatus !== GONE;
    const pause = failed ? pauseSeconds(delivery.attempts + 1, posted.retryAfterSeconds) : undefined;
    await writeAttempt(tx, delivery.id, posted, pause);
  }
  if (disabled) await stopDeliveries(tx, webhook.id);
}

/** Why a webhook should be told no more, if these results say so. */
function endOf(results: readonly Result[]): 'endpoint_gone' | 'retries_exhausted' | undefined {
  if (results.some(({ posted }) => posted.responseStatus === GONE)) return 'endpoint_gone';
  const isLast = ({ delivery, posted }: Result) => posted.error && pauseSeconds(delivery.attempts + 1) === undefined;
  return results.some(isLast) ? 'retries_exhausted' : undefined;
}

export const markSuccess = (tx: Transaction, id: string): Promise<unknown> =>
  tx.query('update webhook set last_success_at = clock_timestamp() where id = $1', [id]);

const writeAttempt = (tx: Transaction, id: string, posted: Posted, pause: number | undefined) =>
  tx.query(
    `update webhook_delivery set attempts = attempts + 1, response_status = $2, duration_ms = $3, error = $4, status = $5,
      next_attempt_at = now() + $6::float8 * interval '1 second' where id = $1`,
    [
      id,
      posted.responseStatus,
      posted.durationMs,
      posted.error,
      posted.error === null ? 'SUCCEEDED' : pause === undefined ? 'FAILED' : 'RETRYING',
      pause ?? null,
    ],
  );

/**
 * Disables a webhook: at once if it is gone, else only if nothing succeeded since the first attempt of what failed.
 * @returns whether it is disabled by that
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
  const disabled = await tx.query(
    `update webhook set status = 'DISABLED', disabled_reason = $2 where id = $1 and status = 'ENABLED'
      and ($3::boolean or last_success_at is null or last_success_at < $4) returning id`,
    [id, reason, reason === 'endpoint_gone', new Date(Math.max(0, ...failedSince))],
  );
  if (!disabled.length) return false;
  const data = { disabled_reason: reason };
  await record(tx, accountId, id, { type: 'webhook.disabled', actor: SYSTEM, data });
  return true;
}

const OPEN_DELIVERIES =
  'id from webhook_delivery where webhook_id = $1 and next_attempt_at is not null order by id for update';

/** Ends what a disabled webhook was still to be told. It can be delivered again by hand. */
export const stopDeliveries = (tx: Transaction, webhookId: string): Promise<unknown> =>
  tx.query(
    `with open as (select ${OPEN_DELIVERIES})
      update webhook_delivery set status = 'FAILED', error = coalesce(error, 'disabled'), next_attempt_at = null
      from open where webhook_delivery.id = open.id`,
    [webhookId],
  );
