/** The end of a credential, after its authentication. */
import { READ_STANDING } from '../../../entities/accounts/credential.ts';
import type { Database } from '../../../entities/database/database.ts';
import type { Queryable } from '../../../entities/database/transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import { OPERATOR_ACCOUNT } from '../../../entities/history/audit.ts';
import { FIND_OPEN_SESSION, READ_OPERATOR } from '../../../entities/operator.ts';
import { atTurnOf, type Viewer } from '../../context.ts';
import { concerns, FIRST_OWNER } from './credential.ts';

/** The longest delay of a timer of Node, which is 24 days. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** `unknown`: the bus may have missed the end. The caller should authenticate again. */
export type CredentialEnd = 'ended' | 'unknown';

/** A watch of a credential. */
export interface CredentialWatch {
  /**
   * Settles after the check for an end before the watch began. The watch has called back then, if there was one. Never
   * rejects.
   */
  checked: Promise<void>;
  /** Ends the watch. */
  forget(): void;
}

/**
 * Calls back when a credential is revoked or expires, or when its account is suspended or resumed. Also calls back when the
 * bus may have missed a revocation. Calls may repeat.
 *
 * The caller authenticated a moment ago, so the end may lie before the watch. The watch listens first and then asks the
 * database once, and misses no end between the two.
 */
export function onCredentialEnd(
  db: Pick<Database, 'bus' | 'query' | 'manager'>,
  viewer: Viewer,
  ended: (how: CredentialEnd) => void,
): CredentialWatch {
  const { bus } = db;
  let isOver = false;
  const forget = bus.listen(
    (change) => {
      if (concerns(change, viewer)) ended(change.accountId || change.id ? 'ended' : 'unknown');
    },
    { kind: 'credential', accountId: viewer.accountId ?? OPERATOR_ACCOUNT },
  );
  let timer: NodeJS.Timeout | undefined;
  const waitFor = (end: number) => {
    const left = end - Date.now();
    const next = left > TIMER_MAX_MS ? () => waitFor(end) : () => ended('ended');
    timer = setTimeout(next, Math.max(0, Math.min(left, TIMER_MAX_MS))).unref();
  };
  if (viewer.expiresAt) waitFor(viewer.expiresAt.getTime());
  const tell = (how: CredentialEnd | undefined) => {
    if (how && !isOver) ended(how);
  };
  return {
    checked: atTurnOf({ viewer, address: null }, () => endBefore(db, viewer)).then(tell, () => tell('unknown')),
    forget: () => {
      isOver = true;
      forget();
      clearTimeout(timer);
    },
  };
}

/** Returns whether the credential ended, or its account was suspended or resumed, since its authentication. */
async function endBefore(db: Pick<Database, 'query' | 'manager'>, viewer: Viewer): Promise<CredentialEnd | undefined> {
  if (viewer.kind === 'operator') return (await standsAsBefore(db, viewer)) ? undefined : 'ended';
  const { credentialId, accountId, suspendedFor = null } = viewer;
  const standing = (await READ_STANDING.first(db, [credentialId, accountId]))!;
  return standing.open && standing.suspendedFor === suspendedFor ? undefined : 'ended';
}

/** Whether an operator still has the token or the session, and the role, of its authentication. */
async function standsAsBefore(db: Queryable, { credentialId, role, session, expiresAt }: Viewer): Promise<boolean> {
  if (credentialId === FIRST_OWNER.credentialId) return true;
  const operator = await READ_OPERATOR.first(db, [credentialId]);
  if (operator?.state !== 'ACTIVE' || operator.role !== role) return false;
  if (session) return (await FIND_OPEN_SESSION.first(db, [session])) !== undefined;
  // A new token has another end.
  return operator.expiresAt?.getTime() === expiresAt?.getTime();
}

/**
 * Asks the database about an operator's token, session and role, because they may have ended since the request began. The answer stays
 * true while the caller holds `lockOperator`. @throws ApiError revoked_credential or expired_credential
 */
export async function requireStanding(db: Queryable, viewer: Viewer): Promise<void> {
  if (!(await standsAsBefore(db, viewer))) throw new ApiError('revoked_credential');
  if (viewer.expiresAt && viewer.expiresAt.getTime() <= Date.now()) throw new ApiError('expired_credential');
}
