/** Sliding windows. The calls of the fixed window before count by the part of it that is still in view. */
import type { Counted, Quota, Taken } from '../../schema/index.ts';

export type { Counted, Quota, Taken };

/** Counts calls. A call counts under all its names, in both windows, or under none if a window of one is full. */
export interface RateLimitStore {
  /** @returns the counts of each name */
  take(quotas: readonly Quota[]): Promise<Taken[]>;
}

export const WINDOW_SECONDS = { minute: 60, hour: 3600 } as const;

/** The number of calls that count at this time. */
export const load = ({ current, before, elapsed }: Counted, seconds: number): number =>
  before * Math.min(1, 1 - elapsed / seconds) + current;

/** Seconds until another call fits; 0 if one does. */
export function waitOf(counted: Counted, quota: number, seconds: number): number {
  const { current, before, elapsed } = counted;
  if (load(counted, seconds) + 1 <= quota) return 0;
  if (current + 1 <= quota) return seconds * (1 - (quota - 1 - current) / before) - elapsed;
  return seconds - elapsed + Math.max(0, seconds * (1 - (quota - 1) / current));
}
