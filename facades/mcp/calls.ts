/** Limits how many tool calls a caller has under way, because each holds its message until it ends. */
import { ApiError, networkOf, type Viewer } from '../../schema/index.ts';

const CALLS_MAX = 32;
const RETRY_SECONDS = 1;

/** The account of a call, or the network of a caller without a credential. */
export const groupOf = (viewer: Viewer | null, address: string | null): string =>
  viewer?.accountId ?? networkOf(address ?? '');

export class CallsUnderWay {
  readonly #calls = new Map<string, number>();

  /** Begins a call. @returns a function that ends it @throws ApiError rate_limited */
  enter(group: string): () => void {
    const calls = this.#calls.get(group) ?? 0;
    if (calls >= CALLS_MAX) {
      const detail = `You have ${CALLS_MAX} tool calls under way. Wait until one ends.`;
      throw new ApiError('rate_limited', detail, { retryAfter: RETRY_SECONDS });
    }
    this.#calls.set(group, calls + 1);
    return () => {
      const left = this.#calls.get(group)! - 1;
      if (left) this.#calls.set(group, left);
      else this.#calls.delete(group);
    };
  }
}
