/**
 * One POST to a customer's URL. Of the receiver's answer, Freehold uses only the status and Retry-After. A customer must not
 * learn which ports of other hosts are open. So durations are steps.
 */
import { traced } from '../../entities/monitoring/traces.ts';
import { type CallError, call, type Outbound } from '../outbound/call.ts';

/** Why a delivery failed. */
export type DeliveryError = CallError | 'http_status' | 'disabled' | 'too_many_waiting';

export interface Posted {
  responseStatus: number | null;
  /** Seconds that the receiver asks Freehold to wait (RFC 9110, 10.2.3). */
  retryAfterSeconds: number | null;
  /** One of `DURATIONS_MS`, or the whole time limit. */
  durationMs: number;
  /** Null after a 2xx answer. */
  error: DeliveryError | null;
}

const DURATIONS_MS = [100, 250, 500, 1000, 2500, 5000, 10_000];
/** Freehold reads no more of an answer. */
const ANSWER_BYTES_MAX = 4096;

export interface Message {
  url: string;
  /** The account of the webhook. */
  account: string;
  headers: Record<string, string>;
  body: string;
}
export interface PostOptions extends Outbound {
  timeoutSeconds: number;
  /** Aborts when the result is no longer needed. */
  aborted?: AbortSignal | undefined;
}

/** Returns network failures and refusals as results. @throws if the caller aborts it */
export async function post(
  message: Message,
  { timeoutSeconds, aborted, rules, resolve }: PostOptions,
): Promise<Posted> {
  const startedAt = performance.now();
  const request = {
    method: 'POST',
    ...message,
    answerBytesMax: ANSWER_BYTES_MAX,
    timeoutSeconds,
    aborted,
  } as const;
  const answer = await traced('client', 'webhook POST', async (span) => {
    const given = await call(request, { rules, resolve });
    span.note(typeof given === 'string' ? { 'error.type': given } : { 'http.response.status_code': given.status });
    return given;
  });
  const passedMs = performance.now() - startedAt;
  const limitMs = timeoutSeconds * 1000;
  const step = DURATIONS_MS.find((one) => one >= passedMs && one < limitMs);
  const durationMs = (answer !== 'unreachable' && step) || limitMs;
  if (typeof answer === 'string') return { responseStatus: null, retryAfterSeconds: null, durationMs, error: answer };
  const ok = answer.status >= 200 && answer.status < 300;
  return {
    responseStatus: answer.status,
    retryAfterSeconds: secondsOf(answer.headers['retry-after']),
    durationMs,
    error: ok ? null : 'http_status',
  };
}

/** Reads Retry-After, which holds seconds or a date. */
function secondsOf(retryAfter: string | undefined): number | null {
  if (!retryAfter) return null;
  if (/^\d{1,9}$/.test(retryAfter)) return Number(retryAfter);
  const at = Date.parse(retryAfter);
  return Number.isNaN(at) ? null : Math.max(0, (at - Date.now()) / 1000);
}
