/** Reads the audit log. */
import { ApiError } from '../../entities/errors.ts';
import {
  API_REQUEST,
  type AuditEntry,
  LIST_AUDIT_ENTRIES,
  LIST_ENTRIES_OF_ACTION,
  LIST_ENTRIES_OF_ACTIONS,
  LIST_ENTRIES_OF_OPERATOR,
  LIST_ENTRIES_OF_OPERATORS,
} from '../../entities/history/audit.ts';
import { EVENT_TYPES } from '../../entities/history/event.ts';
import { idBounds } from '../../entities/ids.ts';
import { accountOf, type Context } from '../context.ts';
import { afterCursor, type Page, type PageRequest, pageFrom } from '../pages.ts';

/** ACT: something changed. REQUEST: a plain request, `api.request`. */
export const AUDIT_KINDS = ['ACT', 'REQUEST'] as const;
type AuditKind = (typeof AUDIT_KINDS)[number];

export interface AuditFilter {
  /** An account, if the operator asks. Absent: the caller's own log. */
  accountId?: string | null | undefined;
  /** The id of an operator, if the operator asks. */
  operator?: string | null | undefined;
  /** Actions, or their beginnings. */
  action?: readonly string[] | null | undefined;
  kind?: AuditKind | null | undefined;
  since?: Date | null | undefined;
  /** Exclusive. */
  until?: Date | null | undefined;
}

const ACTIONS: readonly string[] = [API_REQUEST, ...EVENT_TYPES];
/** The actions that begin with a text. An earlier version may have had the action of another text. */
function beginning(text: string): string[] {
  const found = ACTIONS.includes(text) ? [text] : ACTIONS.filter((action) => action.startsWith(text));
  return found.length ? found : [text];
}
/** Returns the actions of a filter. Null: all. */
function actionsOf({ action, kind }: AuditFilter): string[] | null {
  const named = action?.length ? [...new Set(action.flatMap(beginning))] : null;
  if (!kind) return named;
  return (named ?? ACTIONS).filter((one) => (one === API_REQUEST) === (kind === 'REQUEST'));
}

/**
 * Returns a page of the account's audit log, newest first. The log of the operator also has what operators did in the logs of
 * customers.
 * @throws ApiError not_found, invalid_query or invalid_cursor
 */
export async function listAudit(
  context: Context,
  request: PageRequest,
  filter: AuditFilter,
): Promise<Page<AuditEntry>> {
  const { accountId, operator, action, kind, since = null, until = null } = filter;
  const isOperator = context.viewer?.kind === 'operator';
  const own = isOperator ? null : accountOf(context);
  if (!isOperator && (operator || (accountId && accountId !== own))) throw new ApiError('not_found');
  if (since && until && since >= until) {
    const message = 'until must be later than the beginning of the range.';
    throw new ApiError('invalid_query', message, { errors: [{ field: 'until', code: 'out_of_range', message }] });
  }
  const given = action?.length ? [...new Set(action)] : null;
  const optional = { ...(accountId && { asked: accountId }), ...(operator && { operator }), ...(kind && { kind }) };
  const filters = { action: given, since, until, ...optional };
  const after = afterCursor(request, filters);
  const [oldest, newest] = idBounds('aud', since, until);
  const range = [oldest, after !== null && after < newest ? after : newest, since, until, request.limit + 1];
  const rows = await read(context, { account: accountId ?? own, operator, actions: actionsOf(filter) }, range);
  return pageFrom(rows, request, filters);
}

interface Wanted {
  /** Null: the log of the operator. */
  account: string | null;
  operator?: string | null | undefined;
  /** Null: all. */
  actions: readonly string[] | null;
}
/** Reads entries by the statement that an index serves. @param range of ids and of times, with the limit */
function read({ db }: Context, { account, operator, actions }: Wanted, range: unknown[]): Promise<AuditEntry[]> {
  if (operator) return LIST_ENTRIES_OF_OPERATOR.all(db, [...range, actions ?? ACTIONS, operator, account]);
  if (account === null) return LIST_ENTRIES_OF_OPERATORS.all(db, [...range, actions ?? ACTIONS]);
  if (actions === null) return LIST_AUDIT_ENTRIES.all(db, [account, ...range]);
  if (actions.length === 1) return LIST_ENTRIES_OF_ACTION.all(db, [account, ...range, actions[0]]);
  return LIST_ENTRIES_OF_ACTIONS.all(db, [...range, actions, account]);
}
