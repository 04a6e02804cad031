/** One POST to a customer's URL. The answer of the receiver goes no further than its status and Retry-After. */
import { type CallError, call, type Outbound } from '../outbound/call.ts';

/** Why a delivery did not succeed. */
export type DeliveryError = CallError | 'http_status' | 'disabled';

export interface Posted {
  responseStatus: number | null;
  /** Seconds that the receiver asks to wait (RFC 9110, 10.2.3). */
  retryAfterSeconds: number | null;
  durationMs: number;
  /** Null if the answer was 2xx. */
  error: DeliveryError | null;
}

/** Much more than a receiver has to say; the rest is not read. */
const ANSWER_BYTES_MAX = 4096;

export interface Message {
  url: string;
  headers: Record<string, string>;
  body: string;
}
export interface PostOptions extends Outbound {
  timeoutSeconds: number;
  /** Aborted when nobody waits for the result any more. */
  aborted?: AbortSignal | undefined;
}

/** Never throws for what the network or the receiver does. @throws if it was aborted from outside */
export async function post(message: Message, { timeoutSeconds, aborted, ...outbound }: PostOptions): Promise<Posted> {
  const startedAt = performance.now();
  const request = { method: 'POST', ...message, answerBytesMax: ANSWER_BYTES_MAX, timeoutSeconds, aborted } as const;
  const answer = await call(request, outbound);
  const durationMs = Math.round(performance.now() - startedAt);
  if (typeof answer === 'string') return { responseStatus: null, retryAfterSeconds: null, durationMs, error: answer };
  const ok = answer.status >= 200 && answer.status < 300;
  return {
    responseStatus: answer.status,
    retryAfterSeconds: secondsOf(answer.headers['retry-after']),
    durationMs,
    error: ok ? null : 'http_status',
  };
}

/** Seconds, or a date. */
function secondsOf(retryAfter: string | undefined): number | null {
  if (!retryAfter) return null;
  if (/^\d{1,9}$/.test(retryAfter)) return Number(retryAfter);
  const at = Date.parse(retryAfter);
  return Number.isNaN(at) ? null : Math.max(0, (at - Date.now()) / 1000);
}
