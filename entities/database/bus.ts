/**
 * The bus of changes. It names the row that changed, without its content: a listener reads the row. So the next read makes
 * up for a lost message. A slow listener hears of a row once, not n times.
 *
 * Between processes, the bus uses PostgreSQL's NOTIFY. It sends coalesced messages after the commit, on its own connection.
 * NOTIFY inside a transaction serialises the commits of the cluster. So only the commits of changes that
 * take power away send them. A process that dies loses none of these.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { newClient } from './connection.ts';

const CHANNEL = 'freehold';
/** The kinds of changes. `task` wakes workers, and its id is a lane. `webhook` means that a webhook has deliveries. */
export type ChangeKind = 'server' | 'topUp' | 'balance' | 'credential' | 'task' | 'webhook' | 'operatorEvent' | 'agent';
/** A row that changed. Without an id, any row of the kind may have changed. */
export interface Change {
  kind: ChangeKind;
  accountId: string;
  id: string | null;
}
/** The kinds whose listeners read any row again. Polls find the others. */
const READ_AGAIN = [
  'server',
  'topUp',
  'balance',
  'credential',
  'operatorEvent',
  'agent',
] as const satisfies ChangeKind[];
/** The kinds that the commit itself sends. */
const SENT_BY_COMMIT: ReadonlySet<ChangeKind> = new Set(['credential']);
const NOTIFY = 'select pg_notify($1, payload) from unnest($2::text[]) payload';
/** The pause between two tries to reach the database. */
const PAUSE_MS = 500;
/** The pause between two questions to the database that prove the connection. A firewall drops one without a word. */
const BEAT_MS = 2_000;
/** The time for an answer of the database. Then the connection counts as lost. */
const ANSWER_MS = 5_000;
/** The most messages that wait for the database. */
const WAITING_MAX = 10_000;
/** PostgreSQL's code for a message that no try can send. */
const TOO_LONG = '22023';
type Listener = (change: Change) => void;
/** The changes that a listener hears: of one kind or of all, of one account or of all. */
export interface Heard {
  kind?: ChangeKind;
  accountId?: string | undefined;
}
/** A transaction, as far as the bus needs it. */
interface Sender {
  query(sql: string, parameters: unknown[]): Promise<unknown>;
}

export class Bus {
  readonly #url: string;
  readonly #name: string;
  readonly #sender = randomUUID();
  /** The listeners by kind and account, each '' for all. So a change calls only those who hear it. */
  readonly #listeners = new Map<string, Map<string, Set<Listener>>>();
  /** The changes of each kind since the start. */
  readonly #counts = new Map<ChangeKind, number>();
  readonly #pending = new Set<string>();
  #publisher: pg.Client | undefined;
  #subscriber: pg.Client | undefined;
  #flushing: Promise<void> | undefined;
  #closed = false;

  /** @param name the name of its connections */
  constructor(url: string, name = 'freehold') {
    this.#url = url;
    this.#name = name;
  }

  /** Whether changes of other processes arrive. While false, caches must expire soon. */
  get connected(): boolean {
    return this.#subscriber !== undefined;
  }

  /**
   * The number of changes of these kinds that this process knows of. A reader that keeps its result compares it with the number
   * before the read.
   */
  changesOf(kinds: readonly ChangeKind[]): number {
    return kinds.reduce((sum, kind) => sum + (this.#counts.get(kind) ?? 0), 0);
  }

  /**
   * Makes the commit of a transaction send the changes that take power away. The caller delivers them to this process, by
   * `publish`, after the commit.
   */
  async sendByCommit(tx: Sender, changes: readonly Change[]): Promise<void> {
    const payloads = changes.filter(({ kind }) => SENT_BY_COMMIT.has(kind)).map((change) => this.#payload(change));
    if (payloads.length) await tx.query(NOTIFY, [CHANNEL, payloads]);
  }

  /**
   * Sends changes to all listeners, to those of this process at once. Never throws. Other processes get changes that take
   * power away from the commit. A process that dies loses its other messages.
   */
  publish(changes: readonly Change[]): void {
    for (const change of changes) {
      this.#deliver(change);
      if (!SENT_BY_COMMIT.has(change.kind)) this.#pending.add(this.#payload(change));
    }
    if (this.#pending.size && !this.#closed)
      this.#flushing ??= this.#flush().finally(() => (this.#flushing = undefined));
  }

  /** Calls the listener at the changes of any process that it hears, until the caller calls the returned function. */
  listen(listener: Listener, { kind = '' as ChangeKind, accountId = '' }: Heard = {}): () => void {
    const ofKind = this.#listeners.get(kind) ?? new Map<string, Set<Listener>>();
    const listeners = ofKind.get(accountId) ?? new Set();
    this.#listeners.set(kind, ofKind.set(accountId, listeners.add(listener)));
    return () => {
      listeners.delete(listener);
      if (!listeners.size && ofKind.get(accountId) === listeners) ofKind.delete(accountId);
    };
  }

  /**
   * Yields the changes of one kind from now on, of one account or of all, until the signal aborts. A row that changed twice
   * before the reader read it comes once, so a slow reader costs no memory.
   */
  changes(kind: ChangeKind, accountId: string | undefined, signal: AbortSignal): AsyncGenerator<Change> {
    const waiting = new Map<string | null, Change>();
    let wake = () => {};
    const stop = this.listen(
      (change) => {
        waiting.set(change.id, change);
        wake();
      },
      { kind, accountId },
    );
    const end = () => {
      signal.removeEventListener('abort', end);
      stop();
      wake();
    };
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
    return (async function* () {
      try {
        while (!signal.aborted) {
          for (const [id, change] of waiting) {
            waiting.delete(id);
            yield change;
            if (signal.aborted) return;
          }
          if (waiting.size === 0 && !signal.aborted) await new Promise<void>((resolve) => (wake = resolve));
        }
      } finally {
        end();
      }
    })();
  }

  /** Subscribes to other processes, and retries until it succeeds. */
  async start(): Promise<void> {
    await this.#subscribe().catch(() => this.#resubscribe());
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#flushing;
    await Promise.all([this.#subscriber?.end(), this.#publisher?.end()].map((ended) => ended?.catch(() => {})));
  }

  /** Calls those who hear a change. An error of one listener harms neither the others nor the transaction that has committed. */
  #deliver(change: Change) {
    this.#counts.set(change.kind, this.changesOf([change.kind]) + 1);
    for (const listener of this.#hearing(change))
      try {
        listener(change);
      } catch (error) {
        process.emitWarning(error instanceof Error ? error : String(error));
      }
  }

  /** A change without an account may concern every account. */
  *#hearing({ kind, accountId }: Change): Generator<Listener> {
    for (const heard of ['', kind]) {
      const ofKind = this.#listeners.get(heard);
      if (!accountId) for (const listeners of ofKind?.values() ?? []) yield* listeners;
      else for (const account of ['', accountId]) yield* ofKind?.get(account) ?? [];
    }
  }

  #payload({ kind, accountId, id }: Change): string {
    return `${this.#sender} ${kind} ${accountId} ${id ?? ''}`;
  }

  #newClient(): pg.Client {
    return newClient(this.#url, {
      keepAlive: true,
      application_name: this.#name,
      connectionTimeoutMillis: ANSWER_MS,
      query_timeout: ANSWER_MS,
    });
  }

  async #subscribe() {
    const client = this.#newClient();
    client.on('notification', ({ payload = '' }) => {
      const [sender, kind, accountId, id] = payload.split(' ');
      if (sender !== this.#sender)
        this.#deliver({ kind: kind as ChangeKind, accountId: accountId ?? '', id: id || null });
    });
    try {
      await client.connect();
      await client.query(`listen ${CHANNEL}`);
    } catch (error) {
      void client.end().catch(() => {});
      throw error;
    }
    if (this.#closed) return client.end();
    client.once('end', () => {
      this.#subscriber = undefined;
      if (!this.#closed) void this.#resubscribe();
    });
    this.#subscriber = client;
    void this.#beat(client);
  }

  /** Asks the database again and again, and ends the connection that brings no answer. */
  async #beat(client: pg.Client) {
    try {
      while (this.#subscriber === client && !this.#closed) {
        await sleep(BEAT_MS, undefined, { ref: false });
        await client.query(`listen ${CHANNEL}`);
      }
    } catch {
      void client.end().catch(() => {});
    }
  }

  /** Subscribes again. Messages may be lost, so the bus then reports that any row may have changed. */
  async #resubscribe() {
    while (!this.#closed && !this.#subscriber) {
      await sleep(PAUSE_MS, undefined, { ref: false });
      await this.#subscribe().catch(() => {});
    }
    if (this.#closed) return;
    for (const kind of READ_AGAIN) this.#deliver({ kind, accountId: '', id: null });
  }

  /** Sends the waiting messages. Tries again until it can send, or until the bus is closed. */
  async #flush() {
    while (this.#pending.size) {
      const payloads = [...this.#pending];
      this.#pending.clear();
      try {
        this.#publisher ??= await this.#connectPublisher();
        await this.#publisher.query(NOTIFY, [CHANNEL, payloads]);
      } catch (error) {
        void this.#publisher?.end().catch(() => {});
        this.#publisher = undefined;
        if ((error as { code?: string }).code === TOO_LONG) continue;
        if (this.#closed) return;
        this.#keep(payloads);
        await sleep(PAUSE_MS, undefined, { ref: false });
      }
    }
  }

  /** Keeps messages for later. Of too many rows, others hear that any row may have changed. */
  #keep(payloads: string[]) {
    for (const payload of payloads) this.#pending.add(payload);
    if (this.#pending.size <= WAITING_MAX) return;
    this.#pending.clear();
    for (const kind of READ_AGAIN) this.#pending.add(`${this.#sender} ${kind}  `);
  }

  async #connectPublisher() {
    const client = this.#newClient();
    client.on('error', () => (this.#publisher = undefined));
    await client.connect();
    await client.query('set synchronous_commit = off');
    return client;
  }
}
