/**
 * The database of one request with an idempotency key. Its transactions become savepoints of a single transaction, which
 * commits together with the response. So the key, the effect and the response exist together or not at all.
 *
 * The first change opens the transaction. Before that, a request holds no connection while it reads or hashes a password.
 * After that, reads go through the transaction, too. So calls to the outside come before the first change.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { DataSource, QueryRunner } from 'typeorm';
import { Database } from './database.ts';
import { isConnectionLost, Transaction } from './transaction.ts';

/** The database of the present request, if it has an idempotency key. */
const present = new AsyncLocalStorage<RequestTransaction>();

/**
 * Comes before each call to the outside. A slow answer would keep a connection and the lock of the account from others.
 * @throws Error if the present request has opened its transaction
 */
export function beforeOutsideCall(): void {
  if (present.getStore()?.isOpen)
    throw new Error('A request called the outside within its transaction. Make the call before the first change.');
}

export class RequestTransaction extends Database {
  readonly #begin: (tx: Transaction) => Promise<void>;
  #runner: QueryRunner | undefined;
  #tx: Transaction | undefined;
  #opening: Promise<Transaction> | undefined;
  #source: DataSource | undefined;
  /** Whether a transaction of the request has succeeded, so that the request has a change to commit. */
  #changed = false;

  /** @param begin runs first in the transaction; if it throws, the change that opens the transaction throws */
  constructor(db: Database, begin: (tx: Transaction) => Promise<void>) {
    super(db.source, db.bus, db.waker);
    this.#begin = begin;
  }

  /** Whether the request holds a connection. */
  get isOpen(): boolean {
    return this.#runner !== undefined;
  }

  /** Answers the request. Meanwhile `beforeOutsideCall` watches over it. */
  answer<T>(work: () => Promise<T>): Promise<T> {
    return present.run(this, work);
  }

  override get source(): DataSource {
    return this.#source ?? super.source;
  }

  override query<T>(sql: string, parameters: unknown[] = []): Promise<T[]> {
    return this.#tx ? this.#tx.query<T>(sql, parameters) : super.query<T>(sql, parameters);
  }

  protected override async once<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    const outer = await this.#opened();
    const result = await outer.attempt(work);
    this.#changed = true;
    return result;
  }

  /** Commits the changes of the request and those of `end`. The caller cannot use the database afterwards. */
  async commit(end: (tx: Transaction) => Promise<void>): Promise<void> {
    const tx = await this.#opened();
    try {
      await end(tx);
      await this.bus.sendByCommit(tx, tx.changes);
      await this.#runner!.commitTransaction();
      this.publish(tx.changes);
    } catch (error) {
      if (isConnectionLost(error)) this.publish(tx.changes);
      throw error;
    } finally {
      await this.#release();
    }
  }

  /** Ends a refused request. If transactions of it succeeded, they are committed together with the changes of `end`. */
  async refuse(end: (tx: Transaction) => Promise<void>): Promise<void> {
    if (this.#changed) await this.commit(end);
    else await this.#release();
  }

  /** Ends a request after a fault, without its changes. A repeat must not find their effect. */
  abandon(): Promise<void> {
    return this.#release();
  }

  #opened(): Promise<Transaction> {
    this.#opening ??= this.#open();
    return this.#opening;
  }

  async #open(): Promise<Transaction> {
    const source = super.source;
    const runner = source.createQueryRunner();
    this.#runner = runner;
    try {
      await runner.startTransaction();
      const tx = new Transaction(runner.manager, await runner.connect());
      await this.#begin(tx);
      this.#source = Object.create(source, { manager: { value: runner.manager } }) as DataSource;
      this.#tx = tx;
      return tx;
    } catch (error) {
      await this.#release();
      throw error;
    }
  }

  async #release(): Promise<void> {
    const runner = this.#runner;
    this.#runner = undefined;
    if (runner?.isTransactionActive && !runner.isReleased) await runner.rollbackTransaction().catch(() => {});
    await runner?.release();
  }
}
