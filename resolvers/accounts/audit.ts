/** The audit log: read by its account, and told of every request that could change something. */

import type { Database } from '../../entities/database/database.ts';
import { columnsOf } from '../../entities/database/table.ts';
import { ApiError } from '../../entities/errors.ts';
import { API_REQUEST, AuditEntry } from '../../entities/history/audit.ts';
import { idFloor, newId } from '../../entities/ids.ts';
import { accountOf, type Context } from '../context.ts';
import { afterCursor, type Page, type PageRequest, pageFrom } from '../pages.ts';

const DAY_MS = 86_400_000;

export interface AuditFilter {
  action?: string | null | undefined;
  since?: Date | null | undefined;
  /** Not included. */
  until?: Date | null | undefined;
}

/** A page of the audit log of the account, newest first. @throws ApiError invalid_query or invalid_cursor */
export async function listAudit(
  context: Context,
  request: PageRequest,
  filter: AuditFilter,
): Promise<Page<AuditEntry>> {
  const accountId = accountOf(context);
  const { action = null, since = null, until = null } = filter;
  if (since && until && since >= until) {
    const message = 'until is not after since.';
    throw new ApiError('invalid_query', message, { errors: [{ field: 'until', code: 'out_of_range', message }] });
  }
  const filters = { action, since, until };
  const after = afterCursor(request, filters);
  // Ids bound what is read. They are made a moment before their rows, perhaps by another clock, so by a day more.
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
    ? context.db.query<AuditEntry>(ENTRIES, parameters)
    : context.db.query<AuditEntry>(ENTRIES_OF_ACTION, [...parameters, action]));
  return pageFrom(rows, request, filters);
}
const entries = (range: string, order: string) => `
  select ${columnsOf(AuditEntry)} from audit_entry
  where account_id = $1 and ${range}
    and ($4::timestamptz is null or created_at >= $4) and ($5::timestamptz is null or created_at < $5)
  order by ${order} limit $6`;
const ENTRIES = entries('id >= $2 and id < $3', 'id desc');
/** So that only the index by action fits: by the other, all that lies between two entries of a rare action is read. */
const ENTRIES_OF_ACTION = entries('(action, id) >= ($7, $2) and (action, id) < ($7, $3)', 'action desc, id desc');

/** A request as the audit log knows it. */
export interface AuditedRequest {
  method: string;
  /** The template, never what was sent. */
  path: string;
  status: number;
}

/** Refused for their number: whoever hammers is not to fill the log. */
const RATE_LIMITED = 429;
const FLUSH_MS = 200;
const BATCH_MAX = 1_000;
/** While the database is away, no more than this is kept; the oldest goes first. */
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
 * Writes requests into the audit log, many at once and after their answers, so that none waits for it nor fails with it.
 * What a request changed has entries of its own, in the transaction of the change: those are never lost. A process that
 * is killed loses the requests of its last fifth of a second.
 */
export class RequestAudit {
  readonly #db: Database;
  #waiting: Entry[] = [];
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(db: Database) {
    this.#db = db;
  }

  /** Notes a request of a customer; one of a stranger, or of the operator, belongs to no account. Never throws. */
  add({ viewer, requestId }: Pick<Context, 'viewer' | 'requestId'>, { method, path, status }: AuditedRequest): void {
    if (!viewer?.accountId || status === RATE_LIMITED) return;
    const { accountId, kind, credentialId, name } = viewer;
    if (this.#waiting.length >= WAITING_MAX) this.#waiting.shift();
    this.#waiting.push([
      newId('aud'),
      new Date(),
      accountId,
      kind,
      credentialId,
      name,
      requestId,
      method,
      path,
      status,
    ]);
    this.#timer ??= setTimeout(() => void this.flush(), FLUSH_MS).unref();
  }

  /** Writes what is waiting. What cannot be written is tried again with the next. */
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
        await this.#db.query(WRITE, [API_REQUEST, ...columns(batch)]);
      } catch (error) {
        process.emitWarning(error instanceof Error ? error.message : String(error));
        this.#waiting = [...batch, ...this.#waiting].slice(-WAITING_MAX);
        return;
      }
    }
  }
}

const columns = (batch: Entry[]): unknown[][] => batch[0]!.map((_, i) => batch.map((entry) => entry[i]));
const WRITE = `
  insert into audit_entry (action, id, created_at, account_id, actor_type, actor_id, actor_name, request_id, method, path, status)
  select $1, given.* from unnest($2::text[], $3::timestamptz[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
    $9::text[], $10::text[], $11::int[]) as given on conflict (id) do nothing`;
