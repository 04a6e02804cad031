/** The requests in the audit log. Facades add each request that could change something, and each read of the operator. */
import { forAllCallers } from '../../entities/caller.ts';
import type { Database } from '../../entities/database/database.ts';
import type { Queryable } from '../../entities/database/transaction.ts';
import { apiErrorOf } from '../../entities/errors.ts';
import { type Actor, API_REQUEST, INSERT_REQUESTS, OPERATOR_ACCOUNT } from '../../entities/history/audit.ts';
import { ownersOf, wordsOf } from '../../entities/history/find-account.ts';
import { newId } from '../../entities/ids.ts';
import { faultOf } from '../errors.ts';
import { sharedRead } from '../one-read.ts';
import { Shares } from './shares.ts';

/** A request, as the audit log shows it. */
export interface AuditedRequest {
  method: string;
  /** The template of the path, without values. */
  path: string;
  status: number;
  /** The account whose data the operator read or changed. */
  account?: string | null;
}

/** A root field of GraphQL, with its arguments and their defaults. */
export interface Field {
  name: string;
  isMutation: boolean;
  args: unknown;
}

/** The operator's reads of the same field and account make one entry in this time. */
const REPEAT_MS = 600_000;
const READS_MAX = 10_000;

/** The most accounts that one mutation names. One with more names those of its first arguments, which no later ones hide. */
const NAMED_MAX = 20;
/** The status of calls without the right. Their arguments were not looked at, so the log does not name them. */
const FORBIDDEN = 403;
/** The status of refused calls over a rate limit. They are not logged, so a flood of calls cannot fill the log. */
const RATE_LIMITED = 429;
const OK = 200;
const FLUSH_MS = 200;
const MINUTE_MS = 60_000;
const BATCH_MAX = 1_000;
/** The most entries in the memory. More wait only while the database is away. */
const ENTRIES_MAX = 10_000;

/** Whether the status refuses a request. Such requests of a credential make one entry a minute for each path and status. */
export const isRefusal = (status: number | null): boolean => status !== null && status >= 400 && status < 500;

interface Caller {
  viewer: { accountId: string | null; kind: Actor['type']; credentialId: string; name: string | null } | null;
  requestId: string;
}
/** An entry that waits. A refusal stays for a minute after its writing, and counts the same refusals meanwhile. */
interface Entry {
  id: string;
  /** The time of the first of these requests, by the monotonic clock. The database computes the time. */
  atMs: number;
  /** How often the request came since it was written. */
  count: number;
  /** The first of these requests. */
  requestId: string;
  /** When it may be written or, without a count, removed. By the monotonic clock. */
  dueMs: number;
  accountId: string;
  /** Equal for the same refusals. */
  key: string;
  actor: readonly [accountId: string, type: string, actor: string, name: string | null];
  request: readonly [method: string, path: string, status: number];
  /** The account whose data the operator read or changed. */
  resource: readonly [type: string | null, id: string | null];
}

/**
 * Writes requests into the audit log in batches, after their answers. So no request waits for the log or fails with it.
 * Changes have entries of their own in their transactions, and those are never lost. A killed process loses the requests
 * of its last fifth of a second. It also loses the repeated refusals of its last minute.
 */
export class RequestAudit {
  readonly #db: Database;
  readonly #entries = new Shares<Entry>(ENTRIES_MAX);
  /** The time of the last entry of each kind of read, the oldest first. */
  readonly #reads = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #nextDue: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(db: Database) {
    this.#db = db;
  }

  /** Notes a request of a customer or of the operator. Requests of strangers belong to no account. Never throws. */
  add({ viewer, requestId }: Caller, { method, path, status, account = null }: AuditedRequest): void {
    if (!viewer || status === RATE_LIMITED) return;
    const { kind, credentialId, name } = viewer;
    const accountId = viewer.accountId ?? OPERATOR_ACCOUNT;
    const [id, now, request] = [newId('aud'), performance.now(), [method, path, status] as const];
    const key = isRefusal(status) ? JSON.stringify([credentialId, request, account]) : id;
    const known = this.#entries.get(accountId, key);
    if (!known)
      this.#entries.add(accountId, key, {
        ...{ id, atMs: now, count: 1, requestId, dueMs: now, accountId, key, request },
        actor: [accountId, kind, credentialId, name],
        resource: [account && 'account', account],
      });
    else if (!known.count++) Object.assign(known, { id, atMs: now, requestId });
    this.#timer ??= setTimeout(() => void this.#flush(), FLUSH_MS).unref();
  }

  /**
   * Answers a root field of GraphQL. Notes mutations, also refused ones, and the operator's reads: queries, and each event of
   * a subscription. An entry of the operator names an account. A refused read is noted if it lacked the right.
   */
  field(caller: Caller, field: Field, answer: () => unknown): unknown {
    if (field.isMutation) return this.#change(caller, field, answer);
    return caller.viewer?.kind === 'operator' ? this.#read(caller, field, answer) : answer();
  }

  async #change(caller: Caller, { name, args }: Field, answer: () => unknown): Promise<unknown> {
    const isOperator = caller.viewer?.kind === 'operator';
    // The mutation does not fail with the log.
    const named = (names: string[]) => (isOperator ? accountsOf(this.#db, names).catch(() => []) : []);
    // The account of an assigned payment is the new one. The payment names the former one.
    const asked = Object.values(Object(args)).flatMap(namesIn);
    // A deleted row names no account afterwards.
    const before = await named(asked);
    const note = async (status: number, shown?: unknown) => {
      const all = status === FORBIDDEN ? [] : [...new Set([...before, ...(await named(namesIn(shown)))])];
      if (isOperator) await this.#room();
      const accounts = all.length > NAMED_MAX ? await named(asked.slice(0, NAMED_MAX)) : all;
      for (const account of accounts.length ? accounts : [null])
        this.add(caller, { method: 'POST', path: pathOf(name), status, account });
    };
    try {
      const shown = await answer();
      await note(OK, shown);
      return shown;
    } catch (error) {
      await note(statusOf(error));
      throw error;
    }
  }

  async #read(caller: Caller, { name, args }: Field, answer: () => unknown): Promise<unknown> {
    const shown = await this.#permitted(caller, name, answer);
    await this.#room();
    // An event of a subscription comes to many operators at once.
    const names = [...namesIn(args), ...namesIn(shown).flatMap(wordsOf)];
    for (const account of await sharedRead(this.#db, `owners ${names}`, () => accountsOf(this.#db, names))) {
      const key = [caller.viewer?.credentialId, name, account].join(' ');
      const now = Date.now();
      if ((this.#reads.get(key) ?? 0) > now - REPEAT_MS) continue;
      this.#reads.delete(key);
      if (this.#reads.size >= READS_MAX) this.#reads.delete(this.#reads.keys().next().value!);
      this.#reads.set(key, now);
      this.add(caller, { method: 'POST', path: pathOf(name), status: OK, account });
    }
    return shown;
  }

  /** Answers a read. Notes one for which the operator lacks the right. */
  async #permitted(caller: Caller, name: string, answer: () => unknown): Promise<unknown> {
    try {
      return await answer();
    } catch (error) {
      const status = statusOf(error);
      if (status === FORBIDDEN) this.add(caller, { method: 'POST', path: pathOf(name), status });
      throw error;
    }
  }

  /** Lets the operator wait while the log is half full. So no read loses its entry to others. */
  async #room(): Promise<void> {
    if (this.#entries.size > ENTRIES_MAX / 2) await this.#flush();
  }

  /** Writes all entries, also those whose minute is not over. If the database refuses a batch, the next flush tries it again. */
  flush(): Promise<void> {
    return this.#flush(Number.POSITIVE_INFINITY);
  }

  #flush(until?: number): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => forAllCallers(() => this.#write(until ?? performance.now())));
    return this.#writing;
  }

  async #write(until: number): Promise<void> {
    const due = this.#entries.all().filter(({ dueMs }) => dueMs <= until);
    for (const entry of due) if (!entry.count) this.#entries.remove(entry.accountId, entry.key, entry);
    const waiting = due.filter(({ count }) => count);
    while (waiting.length) {
      const batch = waiting.splice(0, BATCH_MAX);
      const rows = batch.map(rowOf);
      try {
        await INSERT_REQUESTS.all(this.#db, [API_REQUEST, ...columns(rows)]);
      } catch (error) {
        process.emitWarning(error instanceof Error ? error.message : String(error));
        break;
      }
      for (const [i, entry] of batch.entries()) this.#written(entry, rows[i]!.at(-1) as number);
    }
    if (!this.#entries.size) return;
    const nextMs = this.#entries.all().reduce((first, { dueMs }) => Math.min(first, dueMs), Number.POSITIVE_INFINITY);
    clearTimeout(this.#nextDue);
    this.#nextDue = setTimeout(() => void this.#flush(), Math.max(FLUSH_MS, nextMs - performance.now())).unref();
  }

  /** Removes an entry that is written. A refusal begins its next minute, in which it may have come already. */
  #written(entry: Entry, count: number): void {
    entry.count -= count;
    const now = performance.now();
    if (isRefusal(entry.request[2])) Object.assign(entry, { id: newId('aud'), atMs: now, dueMs: now + MINUTE_MS });
    else this.#entries.remove(entry.accountId, entry.key, entry);
  }
}

function rowOf(entry: Entry): unknown[] {
  const { id, atMs, actor, requestId, request, resource, count } = entry;
  return [id, performance.now() - atMs, ...actor, requestId, ...request, ...resource, count];
}
const columns = (batch: unknown[][]): unknown[][] => batch[0]!.map((_, i) => batch.map((entry) => entry[i]));

const statusOf = (error: unknown) => (apiErrorOf(error) ?? faultOf(error)).extensions.status as number;

const pathOf = (field: string) => `/graphql#${field}`;

/** Returns the accounts that the names belong to, each once. */
async function accountsOf(db: Queryable, names: readonly string[]): Promise<string[]> {
  return [...new Set(await ownersOf(db, [...new Set(names)]))];
}

/** The texts in a value, such as arguments, a row, rows or a page. An object with its account stands for that account alone. */
function namesIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return value.flatMap(namesIn);
  if (!isRecord(value)) return [];
  return typeof value.accountId === 'string' ? [value.accountId] : Object.values(value).flatMap(namesIn);
}

/** Whether a value is a plain object: a row, or the arguments of a field. */
function isRecord(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
