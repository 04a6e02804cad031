/** The accounts that ever had money. Changes of the others are few, because they leave rows that stay. */
import type { Database } from '../../entities/database/database.ts';
import { HAS_PAID } from '../../entities/payments/payer.ts';

/**
 * Counts an act of an account, and of the network of a known address, if the account never paid. Each act leaves rows that stay.
 * Refused credentials are `refusal`.
 * @throws ApiError rate_limited
 */
export type CountUnpaid = (accountId: string, address: string | null, act: 'refresh' | 'refusal') => Promise<void>;

/** The accounts in the memory. */
const KNOWN_MAX = 100_000;
/** For so long, an account counts as one that never paid after its payment. A flood of calls then costs few queries. */
const UNPAID_MS = 1_000;

export class Payers {
  readonly #db: Database;
  /** An account that paid once has paid for ever. */
  readonly #paid = new Set<string>();
  /** The time until which an account counts as one that never paid, by the monotonic clock. */
  readonly #unpaid = new Map<string, number>();

  constructor(db: Database) {
    this.#db = db;
  }

  /** Whether the account ever had money. */
  async has(accountId: string): Promise<boolean> {
    if (this.#paid.has(accountId)) return true;
    if ((this.#unpaid.get(accountId) ?? 0) > performance.now()) return false;
    const { paid } = (await HAS_PAID.first(this.#db, [accountId]))!;
    if (this.#paid.size + this.#unpaid.size >= KNOWN_MAX) {
      this.#paid.clear();
      this.#unpaid.clear();
    }
    this.#unpaid.delete(accountId);
    if (paid) this.#paid.add(accountId);
    else this.#unpaid.set(accountId, performance.now() + UNPAID_MS);
    return paid;
  }
}
