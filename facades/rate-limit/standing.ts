/** The limits of a caller, and where the caller stands after a call. */
import type { Standing } from './rate-headers.ts';
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
