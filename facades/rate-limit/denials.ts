/** Remembers full limits, so that the limiter refuses their callers again without a count. */
import type { Standing } from './rate-headers.ts';
import { WINDOW_SECONDS } from './window.ts';

const DENIED_MAX = 10_000;
/** A caller who goes on gets so many refusals at once in a minute. Each further one comes late, so that a flood becomes slow. */
const QUICK_REFUSALS = 100;

/** A limit that was full. */
interface Denial {
  standing: Standing;
  refusals: number;
  /** When the refusals begin to count anew, in milliseconds since the epoch. */
  countedUntil: number;
}

export class Denials {
  /** By the names of the limits. */
  readonly #denials = new Map<string, Denial>();

  get size(): number {
    return this.#denials.size;
  }

  /** The state of the first limit that is full. */
  of(limits: readonly { name: string }[]): Standing | undefined {
    const now = Date.now();
    for (const { name } of limits) {
      const denial = this.#denials.get(name);
      if (!denial || denial.standing.deniedUntil! <= now) continue;
      return { ...denial.standing, isLate: ++denial.refusals > QUICK_REFUSALS };
    }
    return undefined;
  }

  add(name: string, standing: Standing): void {
    const now = Date.now();
    const before = this.#denials.get(name);
    this.#denials.delete(name);
    if (this.#denials.size >= DENIED_MAX) this.#denials.delete(this.#denials.keys().next().value!);
    const isCounted = before && before.countedUntil > now;
    this.#denials.set(name, {
      standing,
      refusals: isCounted ? before.refusals + 1 : 1,
      countedUntil: isCounted ? before.countedUntil : now + WINDOW_SECONDS.minute * 1000,
    });
  }
}
