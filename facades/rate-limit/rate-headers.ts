/** The limits of a caller, as answers tell them: in headers, or by a refusal. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyReply } from 'fastify';
import { ApiError } from '../../schema/index.ts';
import { disconnectOf } from '../http/connections.ts';

interface Window {
  name: string;
  quota: number;
  seconds: number;
  remaining: number;
  /** Seconds until another call fits; 0 if one does. */
  wait: number;
  /** Milliseconds since the epoch: the end of the window or, without remaining calls, the time of the next one. */
  resetAt: number;
}

/** The state of a caller's windows after a call. */
export interface Standing {
  windows: Window[];
  /** After a refusal: the time of the next allowed call, in milliseconds since the epoch. */
  deniedUntil: number | undefined;
  /** Whether the refusal should come late, because the caller has gone on for long. */
  isLate?: boolean;
}

/** The name of the limits of accounts that never paid or are suspended. */
export const UNPAID = 'unpaid';

/**
 * RateLimit and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers, structured fields of RFC 9651). X-RateLimit-*, for
 * older clients, describes the window with the fewest remaining calls.
 */
export function rateHeaders({ windows }: Standing): Record<string, string> {
  const now = Date.now();
  const [tightest] = windows.toSorted((a, b) => a.remaining - b.remaining);
  return {
    'ratelimit-policy': windows.map(({ name, quota, seconds }) => `"${name}";q=${quota};w=${seconds}`).join(', '),
    ratelimit: windows
      .map(({ name, remaining, resetAt }) => `"${name}";r=${remaining};t=${secondsUntil(resetAt, now)}`)
      .join(', '),
    'x-ratelimit-limit': String(tightest!.quota),
    'x-ratelimit-remaining': String(tightest!.remaining),
    'x-ratelimit-reset': String(Math.floor(now / 1000) + secondsUntil(tightest!.resetAt, now)),
  };
}

const secondsUntil = (time: number, now: number): number => Math.max(1, Math.ceil((time - now) / 1000));

/** Refuses a caller above a limit. @throws ApiError rate_limited, which names the limit */
export function refuseDenied({ windows, deniedUntil }: Standing): void {
  if (deniedUntil === undefined) return;
  const { name, quota, seconds } = windows.toSorted((a, b) => b.wait - a.wait)[0]!;
  const way = name.startsWith(UNPAID)
    ? ' It holds before the first payment of the account, and while the account is suspended.'
    : '';
  throw new ApiError('rate_limited', `The limit "${name}" allows ${quota} requests in ${seconds} seconds.${way}`, {
    retryAfter: secondsUntil(deniedUntil, Date.now()),
  });
}

const LATE_MS = 1_000;

/**
 * Refuses the caller of a request above a limit, late if it has gone on for long. It waits for no caller who has gone, because
 * the request keeps its body. @throws ApiError rate_limited
 */
export async function refuseCaller(standing: Standing, { raw }: FastifyReply): Promise<void> {
  if (standing.isLate) await sleep(LATE_MS, undefined, { signal: disconnectOf(raw) }).catch(() => {});
  refuseDenied(standing);
}
