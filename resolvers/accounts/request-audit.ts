/** The requests in the audit log. Facades add each request that could change something, and each read of the operator. */
import type { Database } from '../../entities/database/database.ts';
import type { Queryable } from '../../entities/database/transaction.ts';
import { type Actor, API_REQUEST, INSERT_REQUESTS, OPERATOR_ACCOUNT } from '../../entities/history/audit.ts';
import { isId, newId } from '../../entities/ids.ts';
import { FIND_OWNERS } from '../../entities/servers/operator-lists.ts';

/** A request, as the audit log shows it. */
export interface AuditedRequest {
  method: string;
  /** The template of the path, without values. */
  path: string;
  status: number;
  /** The thing of a customer that the operator read or changed, if the request names it. */
  resource?: { type: 'account' | 'server' | 'topup'; id: string } | undefined;
}

/** The operator's reads of the same field and account make one entry in this time. */
const REPEAT_MS = 600_000;
const READS_MAX = 10_000;

/** The status of refused calls over a rate limit. They are not logged, so a flood of calls cannot fill the log. */
const RATE_LIMITED = 429;
const FLUSH_MS = 200;
const BATCH_MAX = 1_000;
/** The most entries that wait while the database is away. The oldest entry goes first. */
const WAITING_MAX = 10_000;

interface Caller {
  viewer: { accountId: string | null; kind: Actor['type']; credentialId: string; name: string | null } | null;
  requestId: string;
}
type Entry = [
  id: string,
  at: Date,
  accountId: string,
  type: string,
  actor: string,
  name: string | null,
  requestId: string,
  method: string,
  path: string,
  status: number,
  resourceType: string | null,
  resourceId: string | null,
];

/**
 * Writes requests into the audit log in batches, after their answers. So no request waits for the log or fails with it.
 * Changes have entries of their own in their transactions, and those are never lost. A killed process loses the requests
 * of its last fifth of a second.
 */
export class RequestAudit {
  readonly #db: Database;
  #waiting: Entry[] = [];
  /** The time of the last entry of each kind of read, the oldest first. */
  readonly #reads = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(db: Database) {
    this.#db = db;
  }

  /** Notes a request of a customer or of the operator. Requests of strangers belong to no account. Never throws. */
  add({ viewer, requestId }: Caller, { method, path, status, resource }: AuditedRequest): void {
    if (!viewer || status === RATE_LIMITED) return;
    const { kind, credentialId, name } = viewer;
    const accountId = viewer.accountId ?? OPERATOR_ACCOUNT;
    const actor = [accountId, kind, credentialId, name] as const;
    if (this.#waiting.length >= WAITING_MAX) this.#waiting.shift();
    this.#waiting.push([
      newId('aud'),
      new Date(),
      ...actor,
      requestId,
      method,
      path,
      status,
      resource?.type ?? null,
      resource?.id ?? null,
    ]);
    this.#timer ??= setTimeout(() => void this.flush(), FLUSH_MS).unref();
  }

  /** Notes that the operator read data of customers. @param accounts their ids; none: the field shows everything */
  read(caller: Caller, field: string, accounts: readonly string[]): void {
    const ids = accounts.length ? accounts : [undefined];
    for (const id of ids) {
      const key = [caller.viewer?.credentialId, field, id].join(' ');
      const now = Date.now();
      if ((this.#reads.get(key) ?? 0) > now - REPEAT_MS) continue;
      this.#reads.delete(key);
      if (this.#reads.size >= READS_MAX) this.#reads.delete(this.#reads.keys().next().value!);
      this.#reads.set(key, now);
      const resource = id === undefined ? undefined : { type: 'account' as const, id };
      this.add(caller, { method: 'POST', path: `/graphql#${field}`, status: 200, resource });
    }
  }

  /** Writes the waiting entries. If the database refuses a batch, the next flush tries it again. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  async #write(): Promise<void> {
    while (this.#waiting.length) {
      const batch = this.#waiting.splice(0, BATCH_MAX);
      try {
        await INSERT_REQUESTS.all(this.#db, [API_REQUEST, ...columns(batch)]);
      } catch (error) {
        process.emitWarning(error instanceof Error ? error.message : String(error));
        this.#waiting = [...batch, ...this.#waiting].slice(-WAITING_MAX);
        return;
      }
    }
  }
}

const columns = (batch: Entry[]): unknown[][] => batch[0]!.map((_, i) => batch.map((entry) => entry[i]));

/** A row that may name an account, or the order of a server of one. */
type Owned = { accountId?: unknown; orderNumber?: unknown } | null;

/** Returns the accounts of a row, of rows or of a page. A row without its account may name an order. */
export async function accountsIn(db: Queryable, shown: unknown): Promise<string[]> {
  const rows = (Array.isArray(shown) ? shown : ((shown as { data?: unknown[] } | null)?.data ?? [shown])) as Owned[];
  const orders = rows.flatMap((row) => (row && row.accountId === undefined ? [row.orderNumber] : []));
  const numbers = orders.filter((number) => typeof number === 'string');
  const owners = numbers.length ? await FIND_OWNERS.all(db, [numbers]) : [];
  const found = [...rows, ...owners].map((row) => row?.accountId);
  return [...new Set(found)].filter((id): id is string => typeof id === 'string' && isId('acct', id));
}
