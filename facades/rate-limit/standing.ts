/** The limits of a caller, and where the caller stands after a call. */
import { ApiError } from '../../schema/index.ts';
import { rateHeaders, type Standing } from './rate-headers.ts';
import { load, type Quota, type Taken, WINDOW_SECONDS, waitOf } from './window.ts';

/** A quota, and the names of its windows in the headers. */
export interface Limit extends Quota {
  minute: string;
  hour: string;
}

/** Larger than any count. */
export const UNLIMITED = 2 ** 31 - 1;

export function standingOf({ allowed, ...counts }: Taken, { perMinute, perHour, ...names }: Limit): Standing {
  const now = Date.now();
  const all = [
    { name: names.minute, quota: perMinute, counted: counts.minute, seconds: WINDOW_SECONDS.minute },
    { name: names.hour, quota: perHour, counted: counts.hour, seconds: WINDOW_SECONDS.hour },
  ];
  const windows = all
    .filter(({ quota }) => quota !== UNLIMITED)
    .map(({ name, quota, counted, seconds }) => {
      const wait = waitOf(counted, quota, seconds);
      const resetAt = now + (wait || seconds - counted.elapsed) * 1000;
      const remaining = wait ? 0 : Math.max(0, Math.floor(quota - load(counted, seconds)));
      return { name, quota, seconds, wait, remaining, resetAt };
    });
  const wait = Math.max(...windows.map((window) => window.wait));
  return { windows, deniedUntil: allowed ? undefined : now + Math.max(wait, 0.001) * 1000 };
}

const NONE = { current: 0, before: 0, elapsed: 0 };

/** Returns the refusal of a call that was not counted. Its headers, as in every answer, say that the caller has no call at present. */
export function uncounted({ code, message, extras }: ApiError, limits: readonly Limit[]): ApiError {
  const deniedUntil = Date.now() + (extras.retryAfter ?? 1) * 1000;
  const windows = limits
    .flatMap((limit) => standingOf({ allowed: false, minute: NONE, hour: NONE }, limit).windows)
    .map((window) => ({ ...window, remaining: 0, resetAt: deniedUntil }));
  return new ApiError(code, message, { ...extras, headers: rateHeaders({ windows, deniedUntil }) });
}
