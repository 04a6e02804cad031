/**
 * A repeated request with its idempotency key gets the first answer, and has its effect once. The transaction of the
 * effect also writes the row of the key. So the service recognises a request even if the answer to its COMMIT was lost.
 */
import { FIND_LOGIN_CHANGE } from '../entities/accounts/credential.ts';
import type { Database } from '../entities/database/database.ts';
import { RequestTransaction } from '../entities/database/request-transaction.ts';
import { isConnectionLost } from '../entities/database/transaction.ts';
import { ApiError, apiErrorOf, causesOf } from '../entities/errors.ts';
import { KeptRequest, type KeyedRequest, KeyTaken, sweepIdempotencyKeys } from '../entities/idempotency.ts';
import { digest, type Vault } from '../entities/secrets.ts';

/** The longest wait for the first request with the same key. */
const WAIT_MS = 5_000;
const POLL_MS = 50;
const ATTEMPTS_MAX = 6;

export interface KeptAnswer {
  answer: string;
  /** Whether an earlier request made this answer. */
  replayed: boolean;
  /** Whether that request had the same code of the second factor. */
  sameCode: boolean;
}

/** Answers a request over a database of its own. */
type Work = (db: Database, keyDigest: Buffer) => Promise<string>;

export class IdempotencyKeys {
  readonly #db: Database;
  readonly #vault: Vault;
  /** The running requests of this process. Requests that wait for them hold no connection. */
  readonly #running = new Map<string, Promise<unknown>>();

  constructor(db: Database, vault: Vault) {
    this.#db = db;
    this.#vault = vault;
  }

  /**
   * Does the work once, and commits its changes together with the answer. An error is not kept.
   * @throws ApiError idempotency_key_reused or idempotency_in_progress
   */
  async once(request: KeyedRequest, work: Work): Promise<KeptAnswer> {
    const kept = new KeptRequest(request, this.#vault);
    const deadline = Date.now() + WAIT_MS;
    for (let first = this.#running.get(kept.name); first; first = this.#running.get(kept.name))
      await before(deadline, first);
    const run = this.#run(kept, work, deadline).then(async (kept) => {
      if (kept.replayed) await this.#refuseOutdated(kept.answer);
      return kept;
    });
    this.#running.set(kept.name, run);
    return run.finally(() => this.#running.delete(kept.name));
  }

  async #run(kept: KeptRequest, work: Work, deadline: number): Promise<KeptAnswer> {
    for (let attempt = 1; ; attempt++) {
      try {
        const found = await kept.find(this.#db);
        if (found) return { ...found, replayed: true };
        return { answer: await this.#first(kept, work), replayed: false, sameCode: true };
      } catch (error) {
        if (causesOf(error).some((cause) => cause instanceof KeyTaken)) {
          if (Date.now() > deadline) throw new ApiError('idempotency_in_progress', undefined, { retryAfter: 1 });
          attempt = 0;
        } else if (!isConnectionLost(error) || attempt >= ATTEMPTS_MAX) throw error;
        await new Promise((resume) => setTimeout(resume, POLL_MS));
      }
    }
  }

  /**
   * The caller of a login or a refresh may know an old password, or lack the second factor.
   * @throws ApiError idempotency_key_reused if the login has changed since the answer showed its tokens
   */
  async #refuseOutdated(answer: string): Promise<void> {
    const digests = [...answer.matchAll(/"(svc_at_\w+)"/g)].map(([, token]) => digest(token!));
    if (digests.length && (await FIND_LOGIN_CHANGE.first(this.#db, [digests])))
      throw new ApiError(
        'idempotency_key_reused',
        'The account has changed its login since the first request with this key. Log in by {Login}.',
      );
  }

  async #first(kept: KeptRequest, work: Work): Promise<string> {
    const db = new RequestTransaction(this.#db, (tx) => kept.claim(tx));
    let answer: string;
    try {
      answer = await db.answer(() => work(db, kept.digest));
    } catch (error) {
      if (apiErrorOf(error)) await db.refuse((tx) => kept.forget(tx));
      else await db.abandon();
      throw error;
    }
    await db.commit((tx) => kept.keep(tx, answer));
    return answer;
  }

  /** Deletes the keys that have expired. */
  async sweep(): Promise<void> {
    await sweepIdempotencyKeys(this.#db);
  }
}

/** Waits for another request to end, well or badly. @throws ApiError idempotency_in_progress */
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
