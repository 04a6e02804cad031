/** Limits how many of a thing each caller has at once, in this process. */
import { ApiError } from '../entities/errors.ts';

export { Turns } from '../entities/turns.ts';

export class Ceiling {
  /** The most that one caller has at once. */
  readonly #max: number;
  readonly #detail: string;
  readonly #retryAfter: number | undefined;
  readonly #counts = new Map<string, number>();

  /**
   * @param detail says to a caller what to end first
   * @param retryAfter seconds until another try makes sense. Absent: it depends on the caller alone
   */
  constructor(max: number, detail: string, retryAfter?: number) {
    this.#max = max;
    this.#detail = detail;
    this.#retryAfter = retryAfter;
  }

  /** Counts one more. @returns a function that ends the count; further calls of it do nothing @throws ApiError rate_limited */
  enter(caller: string): () => void {
    const count = this.#counts.get(caller) ?? 0;
    if (count >= this.#max)
      throw new ApiError('rate_limited', this.#detail, this.#retryAfter ? { retryAfter: this.#retryAfter } : {});
    this.#counts.set(caller, count + 1);
    let entered = true;
    return () => {
      if (!entered) return;
      entered = false;
      const left = this.#counts.get(caller)! - 1;
      if (left) this.#counts.set(caller, left);
      else this.#counts.delete(caller);
    };
  }
}
