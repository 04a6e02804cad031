/** The accounts that ever had money and are not suspended. Changes of the others are few, because they leave rows that stay. */
import type { Database } from '../../entities/database/database.ts';
import { IS_ACTIVE_PAYER } from '../../entities/payments/payer.ts';

/**
 * Counts an act of an account that never paid or is suspended. Counts it for the network of a known address, too. Each act
 * leaves rows that stay. Refused credentials are `refusal`.
 * @throws ApiError rate_limited
 */
export type CountUnpaid = (accountId: string, address: string | null, act: 'refresh' | 'refusal') => Promise<void>;

/** The accounts in the memory. */
const KNOWN_MAX = 100_000;
/** For so long, an account counts as before its payment or suspension. A flood of calls then costs few queries. */
const KNOWN_MS = 1_000;
/** For so long, a suspended account reads as a payer. Most calls are reads of payers, and cost no query. */
const READS_MS = 60_000;

export class Payers {
  readonly #db: Database;
  /** The last answers of the database, and their time by the monotonic clock. */
  readonly #known = new Map<string, { active: boolean; at: number }>();

  constructor(db: Database) {
    this.#db = db;
  }

  /** Whether the account ever had money, and is not suspended. */
  async has(accountId: string, isRead = false): Promise<boolean> {
    const known = this.#known.get(accountId);
    const now = performance.now();
    if (known && now - known.at < (isRead && known.active ? READS_MS : KNOWN_MS)) return known.active;
    const { active } = (await IS_ACTIVE_PAYER.first(this.#db, [accountId])) ?? { active: false };
    if (this.#known.size >= KNOWN_MAX) this.#known.clear();
    this.#known.set(accountId, { active, at: performance.now() });
    return active;
  }
}
