/** The audit log: the account reads it, and facades add every request that could change something. */
import type { Database } from '../../entities/database/database.ts';
import { ApiError } from '../../entities/errors.ts';
import {
  API_REQUEST,
  type AuditEntry,
  INSERT_REQUESTS,
  LIST_AUDIT_ENTRIES,
  LIST_ENTRIES_OF_ACTION,
} from '../../entities/history/audit.ts';
import { idFloor, newId } from '../../entities/ids.ts';
import { accountOf, type Context } from '../context.ts';
import { afterCursor, type Page, type PageRequest, pageFrom } from '../pages.ts';

const DAY_MS = 86_400_000;

export interface AuditFilter {
  action?: string | null | undefined;
  since?: Date | null | undefined;
  /** Exclusive. */
  until?: Date | null | undefined;
}

/** Returns a page of the account's audit log, newest first. @throws ApiError invalid_query or invalid_cursor */
export async function listAudit(
  context: Context,
  request: PageRequest,
  filter: AuditFilter,
): Promise<Page<AuditEntry>> {
  const accountId = accountOf(context);
  const { action = null, since = null, until = null } = filter;
  if (since && until && since >= until) {
    const message = 'until must be later than since.';
    throw new ApiError('invalid_query', message, { errors: [{ field: 'until', code: 'out_of_range', message }] });
  }
  const filters = { action, since, until };
  const after = afterCursor(request, filters);
  // The ids bound the read. They are older than their rows, perhaps by another clock, so the bounds have a day to spare.
  const newest = idFloor('aud', until ? until.getTime() + DAY_MS : Number.MAX_SAFE_INTEGER);
  const parameters = [
    accountId,
    idFloor('aud', since ? since.getTime() - DAY_MS : 0),
    after !== null && after < newest ? after : newest,
    since,
    until,
    request.limit + 1,
  ];
  const rows = await (action === null
    ? LIST_AUDIT_ENTRIES.all(context.db, parameters)
    : LIST_ENTRIES_OF_ACTION.all(context.db, [...parameters, action]));
  return pageFrom(rows, request, filters);
}

/** A request, as the audit log shows it. */
export interface AuditedRequest {
  method: string;
  /** The template of the path, without values. */
  path: string;
  status: number;
}

/** The status of refused calls over a rate limit. They are not logged, so a flood of calls cannot fill the log. */
const RATE_LIMITED = 429;
const FLUSH_MS = 200;
const BATCH_MAX = 1_000;
/** The most entries that wait while the database is away. The oldest entry goes first. */
const WAITING_MAX = 10_000;

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
];

/**
 * Writes requests into the audit log in batches, after their answers. So no request waits for the log or fails with it.
 * Changes have entries of their own in their transactions, and those are never lost. A killed process loses the requests
 * of its last fifth of a second.
 */
export class RequestAudit {
  readonly #db: Database;
  #waiting: Entry[] = [];
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(db: Database) {
    this.#db = db;
  }

  /** Notes a request of a customer. Requests of strangers and of the operator belong to no account. Never throws. */
  add({ viewer, requestId }: Pick<Context, 'viewer' | 'requestId'>, { method, path, status }: AuditedRequest): void {
    if (!viewer?.accountId || status === RATE_LIMITED) return;
    const { accountId, kind, credentialId, name } = viewer;
    const actor = [accountId, kind, credentialId, name] as const;
    if (this.#waiting.length >= WAITING_MAX) this.#waiting.shift();
    this.#waiting.push([newId('aud'), new Date(), ...actor, requestId, method, path, status]);
    this.#timer ??= setTimeout(() => void this.flush(), FLUSH_MS).unref();
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
