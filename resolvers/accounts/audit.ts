/** Reads the audit log. */
import { ApiError } from '../../entities/errors.ts';
import {
  type AuditEntry,
  LIST_AUDIT_ENTRIES,
  LIST_ENTRIES_OF_ACTION,
  LIST_ENTRIES_OF_ACTIONS,
  OPERATOR_ACCOUNT,
} from '../../entities/history/audit.ts';
import { idBounds } from '../../entities/ids.ts';
import { accountOf, type Context } from '../context.ts';
import { afterCursor, type Page, type PageRequest, pageFrom } from '../pages.ts';

export interface AuditFilter {
  /** An account, if the operator asks. Absent: the caller's own log. */
  accountId?: string | null | undefined;
  action?: readonly string[] | null | undefined;
  since?: Date | null | undefined;
  /** Exclusive. */
  until?: Date | null | undefined;
}

/** Returns a page of the account's audit log, newest first. @throws ApiError not_found, invalid_query or invalid_cursor */
export async function listAudit(
  context: Context,
  request: PageRequest,
  { accountId: asked, ...filter }: AuditFilter,
): Promise<Page<AuditEntry>> {
  const { viewer } = context;
  const accountId = viewer?.kind === 'operator' ? (asked ?? OPERATOR_ACCOUNT) : accountOf(context);
  if (asked && asked !== accountId) throw new ApiError('not_found');
  const { since = null, until = null } = filter;
  const action = filter.action?.length ? [...new Set(filter.action)] : null;
  if (since && until && since >= until) {
    const message = 'until must be later than the beginning of the range.';
    throw new ApiError('invalid_query', message, { errors: [{ field: 'until', code: 'out_of_range', message }] });
  }
  const filters = { action, since, until, ...(asked && { asked }) };
  const after = afterCursor(request, filters);
  const [oldest, newest] = idBounds('aud', since, until);
  const parameters = [
    accountId,
    oldest,
    after !== null && after < newest ? after : newest,
    since,
    until,
    request.limit + 1,
  ];
  const rows = await (action === null
    ? LIST_AUDIT_ENTRIES.all(context.db, parameters)
    : action.length === 1
      ? LIST_ENTRIES_OF_ACTION.all(context.db, [...parameters, action[0]])
      : LIST_ENTRIES_OF_ACTIONS.all(context.db, [...parameters, action]));
  return pageFrom(rows, request, filters);
}
