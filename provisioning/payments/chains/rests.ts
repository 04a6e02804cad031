/**
 * Top-ups and payments that failed rest for some looks, twice as many after each further failure. So they cost the others
 * little. The operator still reads their problems.
 */

const LOOKS_MAX = 256;

interface Rest {
  failures: number;
  /** The looks that it still rests. */
  looks: number;
  problem: string;
}

export type KeptRests = Record<string, Rest>;

export class Rests {
  readonly #before: KeptRests;
  readonly #now: KeptRests = {};

  /** @param before the result of `kept` in the look before */
  constructor(before: KeptRests = {}) {
    this.#before = before;
  }

  /** The failures for the next look. */
  get kept(): KeptRests {
    return this.#now;
  }

  /** Whether it failed the last time. */
  has(name: string): boolean {
    return name in this.#before;
  }

  /** Returns whether the look may try it. Otherwise it rests for one more look. */
  isReady(name: string): boolean {
    const known = this.#before[name];
    if (!known?.looks) return true;
    this.#now[name] = { ...known, looks: known.looks - 1 };
    return false;
  }

  /** Notes that it failed. */
  fail(name: string, problem: string): void {
    const failures = (this.#before[name]?.failures ?? 0) + 1;
    this.#now[name] = { failures, looks: Math.min(LOOKS_MAX, 2 ** (failures - 1)), problem };
  }
}

/** The problems of all that failed, in one sentence; null: nothing failed. */
export function problemOf(kept: KeptRests): string | null {
  const [first = null, ...others] = Object.values(kept).map(({ problem }) => problem);
  return others.length ? `${first}; and ${others.length} more` : first;
}
