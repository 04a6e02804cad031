/** The consequences of an attempt: another attempt or the end of the delivery, and perhaps a disabled webhook. */
import type { Transaction } from '../../entities/database/transaction.ts';
import { SYSTEM } from '../../entities/history/audit.ts';
import { record } from '../../entities/history/record.ts';
import {
  DISABLE_WEBHOOK,
  LOCK_DELIVERIES,
  LOCK_OPEN_DELIVERIES,
  STOP_DELIVERIES,
  type WebhookDelivery,
  WRITE_ATTEMPTS,
} from '../../entities/webhooks/delivery.ts';
import { MARK_SUCCESS, type Webhook } from '../../entities/webhooks/webhook.ts';
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
  const disabled = reason !== undefined && (await disable(tx, webhook, reason, failedSince(results)));
  if (disabled) await LOCK_OPEN_DELIVERIES.all(tx, [webhook.id]);
  await writeAttempts(tx, results);
  if (disabled) await STOP_DELIVERIES.all(tx, [webhook.id]);
}

/** Disables a webhook that has expired, and stops its deliveries. */
export async function expire(tx: Transaction, webhook: Webhook): Promise<void> {
  if (!(await disable(tx, webhook, 'expired'))) return;
  await LOCK_OPEN_DELIVERIES.all(tx, [webhook.id]);
  await STOP_DELIVERIES.all(tx, [webhook.id]);
}

/** Returns the reason to disable the webhook, if the results give one. */
function endOf(results: readonly Result[]): 'endpoint_gone' | 'retries_exhausted' | undefined {
  if (results.some(({ posted }) => posted.responseStatus === GONE)) return 'endpoint_gone';
  const isLast = ({ delivery, posted }: Result) => posted.error && pauseSeconds(delivery.attempts + 1) === undefined;
  return results.some(isLast) ? 'retries_exhausted' : undefined;
}

/** Writes the attempts, with one statement for each outcome. */
async function writeAttempts(tx: Transaction, results: readonly Result[]): Promise<void> {
  const attempts = results.map(({ delivery: { id, attempts }, posted }) => {
    const mayRetry = posted.error !== null && posted.responseStatus !== GONE;
    const pause = mayRetry ? pauseSeconds(attempts + 1, posted.retryAfterSeconds) : undefined;
    return { ...posted, id, pause: pause ?? null };
  });
  const outcomes = Map.groupBy(attempts, ({ error, pause }) => outcomeOf(error, pause));
  const listOf = (some: typeof attempts, name: keyof (typeof attempts)[number]) => some.map((one) => one[name]);
  if (outcomes.size > 1) await LOCK_DELIVERIES.all(tx, [listOf(attempts, 'id')]);
  for (const [outcome, some] of outcomes)
    await WRITE_ATTEMPTS[outcome].all(
      tx,
      (['id', 'responseStatus', 'durationMs', 'error', 'pause'] as const).map((name) => listOf(some, name)),
    );
}
const outcomeOf = (error: string | null, pause: number | null) =>
  error === null ? 'SUCCEEDED' : pause === null ? 'FAILED' : 'RETRYING';

/** Returns the time of the latest first attempt among the deliveries that failed for good. */
function failedSince(results: readonly Result[]): Date {
  const times = results
    .filter(({ delivery, posted }) => posted.error && pauseSeconds(delivery.attempts + 1) === undefined)
    .map(({ delivery }) => delivery.firstAttemptAt?.getTime() ?? 0);
  return new Date(Math.max(0, ...times));
}

/**
 * Disables a webhook. Retries that are exhausted disable it only if no delivery succeeded since the first attempt of a
 * failed one.
 * @returns whether the webhook was enabled and is disabled now
 */
async function disable(
  tx: Transaction,
  { id, accountId }: Webhook,
  reason: 'endpoint_gone' | 'retries_exhausted' | 'expired',
  since = new Date(0),
): Promise<boolean> {
  if (!(await DISABLE_WEBHOOK.first(tx, [id, reason !== 'retries_exhausted', since, reason]))) return false;
  await record(tx, accountId, id, { type: 'webhook.disabled', actor: SYSTEM, data: { disabled_reason: reason } });
  return true;
}
