/**
 * A request that is sent again with its idempotency key gets its first answer, and has its effect once. The key's row is
 * written in the transaction of the effect, so that also a COMMIT whose answer was lost is found out about.
 */
import type { Database } from '../entities/database/database.ts';
import { RequestTransaction } from '../entities/database/request-transaction.ts';
import { isConnectionLost } from '../entities/database/transaction.ts';
import { ApiError, causesOf } from '../entities/errors.ts';
import { KeptRequest, type KeyedRequest, KeyTaken } from '../entities/idempotency.ts';
import type { Vault } from '../entities/secrets.ts';

/** How long a request waits for the first one with its key. */
const WAIT_MS = 5_000;
const POLL_MS = 50;
const ATTEMPTS_MAX = 6;

export interface KeptAnswer {
  answer: string;
  /** It is that of an earlier request. */
  replayed: boolean;
}

export class IdempotencyKeys {
  readonly #db: Database;
  readonly #salt: Buffer;
  /** The requests of this process that are running, so that those who wait keep no connection. */
  readonly #running = new Map<string, Promise<unknown>>();

  constructor(db: Database, vault: Vault) {
    this.#db = db;
    this.#salt = vault.derive('idempotency');
  }

  /**
   * Does the work once, over a database whose changes are committed with its answer. What it throws is not kept.
   * @throws ApiError idempotency_key_reused or idempotency_in_progress
   */
  async once(request: KeyedRequest, work: (db: Database) => Promise<string>): Promise<KeptAnswer> {
    const kept = new KeptRequest(request, this.#salt);
    const deadline = Date.now() + WAIT_MS;
    for (let first = this.#running.get(kept.name); first; first = this.#running.get(kept.name))
      await before(deadline, first);
    const run = this.#run(kept, work, deadline);
    this.#running.set(kept.name, run);
    return run.finally(() => this.#running.delete(kept.name));
  }

  async #run(kept: KeptRequest, work: (db: Database) => Promise<string>, deadline: number): Promise<KeptAnswer> {
    for (let attempt = 1; ; attempt++) {
      try {
        const answer = await kept.find(this.#db);
        if (answer !== undefined) return { answer, replayed: true };
        return { answer: await this.#first(kept, work), replayed: false };
      } catch (error) {
        if (causesOf(error).some((cause) => cause instanceof KeyTaken)) {
          if (Date.now() > deadline) throw new ApiError('idempotency_in_progress', undefined, { retryAfter: 1 });
          attempt = 0;
        } else if (!isConnectionLost(error) || attempt >= ATTEMPTS_MAX) throw error;
        await new Promise((resume) => setTimeout(resume, POLL_MS));
      }
    }
  }

  async #first(kept: KeptRequest, work: (db: Database) => Promise<string>): Promise<string> {
    const db = new RequestTransaction(this.#db, (tx) => kept.claim(tx));
    let answer: string;
    try {
      answer = await work(db);
    } catch (error) {
      await db.refuse((tx) => kept.forget(tx));
      throw error;
    }
    await db.commit((tx) => kept.keep(tx, answer));
    return answer;
  }

  /** Deletes what has expired. */
  async sweep(): Promise<void> {
    await this.#db.query('delete from idempotency_key where expires_at < now()');
  }
}

/** Waits for another request to end, however it does. @throws ApiError idempotency_in_progress */
async function before(deadline: number, other: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'late'>((resolve) => (timer = setTimeout(resolve, deadline - Date.now(), 'late')));
  const ended = other.then(
    () => 'ended',
    () => 'ended',
  );
  const first = await Promise.race([ended, late]);
  clearTimeout(timer);
  if (first === 'late') throw new ApiError('idempotency_in_progress', undefined, { retryAfter: 1 });
}
