/**
 * Operators sign in with a name, a password and a code of the second factor. They choose both by an invitation. Each session
 * has a token for the console, and the service stores its digest alone.
 */
import { find, remove } from '../entities/database/table.ts';
import type { Queryable, Transaction } from '../entities/database/transaction.ts';
import { ApiError } from '../entities/errors.ts';
import { OPERATOR_ACCOUNT } from '../entities/history/audit.ts';
import { transition } from '../entities/history/transition.ts';
import { newId } from '../entities/ids.ts';
import {
  FIND_BY_NAME,
  FIND_INVITED,
  LIST_SESSIONS,
  OPEN_SESSION,
  OPERATOR_LIFECYCLE,
  type Operator,
  OperatorSession,
  READ_OPERATOR,
} from '../entities/operator.ts';
import { lockOperator } from '../entities/payments/ledger.ts';
import { digest, mintCredential } from '../entities/secrets.ts';
import { requireOpen } from './accounts/account.ts';
import { inSession } from './accounts/auth/credential.ts';
import { hashPassword, refuseWeakPassword, verifyPassword } from './accounts/auth/password.ts';
import { mayCall } from './accounts/auth/scope.ts';
import {
  isRecoveryCode,
  newRecoveryCodes,
  useRecoveryCode,
  useSecondFactor,
  useTotp,
} from './accounts/auth/second-factor.ts';
import type { LoginAttempt } from './accounts/auth/throttle.ts';
import { confirmSetup, continueSetup, type TotpSetup } from './accounts/auth/totp.ts';
import type { Context, Viewer } from './context.ts';
import { found, invalid } from './errors.ts';
import { recordByOperator } from './record.ts';

export type { OperatorSession, TotpSetup };

export interface SignedIn {
  operator: Operator;
  /** The token of the session; the service cannot show it again. */
  token: string;
  /** When the session ends, however much it is used. */
  expiresAt: Date;
}

export interface Accepted extends SignedIn {
  /** The recovery codes; the service cannot show them again. */
  recoveryCodes: string[];
}

export interface SignIn {
  name: string;
  password: string;
  totpCode: string;
}

export interface Acceptance {
  /** The code of the invitation. */
  code: string;
  password: string;
  totpCode: string;
}

/**
 * Returns the seed of an invited operator, and notes that. The seed stays the same until `acceptInvitation`, or until the
 * invitation expires.
 * @throws ApiError not_found
 */
export async function openInvitation(context: Context, code: string): Promise<TotpSetup & { name: string }> {
  return context.db.transaction(async (tx) => {
    await lockOperator(tx);
    const { id, name, secondsLeft } = await invitedBy(context, tx, code);
    context.security.operator('operator.invitation_opened', id, context.address);
    return { name, ...(await continueSetup(context, tx, id, name, secondsLeft)) };
  });
}

/**
 * Takes the password and the second factor of an invited operator, and signs them in. The invitation ends.
 * @returns the session, and the first recovery codes
 * @throws ApiError not_found, weak_password, totp_setup_missing or invalid_totp
 */
export async function acceptInvitation(context: Context, { code, password, totpCode }: Acceptance): Promise<Accepted> {
  const { name } = await invitedBy(context, context.db, code);
  await refuseWeakPassword(password, name);
  const passwordHash = await hashPassword(password, context.address);
  const signedIn = await context.db.transaction(async (tx) => {
    await lockOperator(tx);
    const { id } = await invitedBy(context, tx, code);
    await confirmSetup(context, tx, id, totpCode);
    const set = { passwordHash, invitationDigest: null, invitationExpiresAt: null };
    const recoveryCodes = await newRecoveryCodes(context, tx, id);
    const operator = found(await transition(tx, OPERATOR_LIFECYCLE, id, 'ACTIVE', { set }));
    return { ...(await openSession(context, tx, operator)), recoveryCodes };
  });
  context.logins.remember(attemptOf(context, signedIn.operator.id));
  return signedIn;
}

/**
 * Attempts count for the operator, however the caller writes the name. Colleagues read an id, so attempts by it lock no operator out.
 * The name of no account has a space.
 */
const attemptOf = ({ address }: Context, name: string): LoginAttempt => ({ name: `operator ${name}`, address });

async function invitedBy(
  { security }: Context,
  db: Queryable,
  code: string,
): Promise<Operator & { secondsLeft: number }> {
  const invited = await FIND_INVITED.first(db, [digest(code)]);
  if (invited) return invited;
  security.count('unknown or used invitations');
  throw new ApiError('not_found', 'The invitation is unknown, used or expired. Ask an owner for a new one.');
}

/**
 * Signs an operator in. The answer does not tell which of the three was wrong. Attempts count for the name and for the
 * network of the caller, as those of customers do. The token in DATA_DIR needs no sign-in, so no attempt locks it out.
 * @throws ApiError invalid_login or login_throttled
 */
export async function signIn(context: Context, given: SignIn): Promise<SignedIn> {
  const { db, logins, security, address } = context;
  const known = await FIND_BY_NAME.first(db, [given.name]);
  const attempt = attemptOf(context, known?.id ?? `unknown ${given.name.toLowerCase()}`);
  try {
    return await logins.attempt(attempt, async () => {
      if (!(await verifyPassword(known?.passwordHash, given.password, address)) || !known) throw wrongSignIn();
      const signedIn = await db.transaction((tx) => open(context, tx, known, given.totpCode));
      logins.remember(attempt);
      return signedIn;
    });
  } catch (error) {
    if (known && error instanceof ApiError && NOTED.has(error.code))
      security.operator('operator.refused', known.id, address);
    throw error;
  }
}
const NOTED: ReadonlySet<string> = new Set(['invalid_login', 'login_throttled']);
const wrongSignIn = () => new ApiError('invalid_login', 'The name, the password or the code is wrong.');

async function open(context: Context, tx: Transaction, checked: Operator, totpCode: string): Promise<SignedIn> {
  await lockOperator(tx);
  const operator = await READ_OPERATOR.first(tx, [checked.id]);
  // An owner may have ended or invited the operator since the check.
  const stands = operator?.state === 'ACTIVE' && operator.passwordHash === checked.passwordHash;
  if (!stands) throw wrongSignIn();
  if (!isRecoveryCode(totpCode)) {
    if (!(await useTotp(context, tx, checked.id, totpCode))) throw wrongSignIn();
    return openSession(context, tx, operator);
  }
  const codesLeft = await useRecoveryCode(context, tx, checked.id, totpCode);
  if (codesLeft === undefined) throw wrongSignIn();
  return openSession(context, tx, operator, { by: 'recovery_code', codesLeft });
}

/**
 * Replaces the recovery codes of the caller, and returns the new ones. Wrong codes count as attempts to sign in.
 * @throws ApiError invalid_totp, login_throttled, or validation_failed for a caller with a token
 */
export async function renewOperatorRecoveryCodes(context: Context, totpCode: string): Promise<string[]> {
  const { viewer, logins } = context;
  if (!viewer?.session) throw invalid('totp_code', 'You act by a token, and have no second factor. Sign in first.');
  const id = viewer.credentialId;
  return logins.attempt(attemptOf(context, id), () =>
    context.db.transaction(async (tx) => {
      await lockOperator(tx);
      await requireOpen(tx, context);
      await useSecondFactor(context, tx, id, totpCode);
      await recordByOperator(tx, context, id, { type: 'operator.updated', data: { renewed: 'recovery_codes' } });
      return newRecoveryCodes(context, tx, id);
    }),
  );
}

/** @param how tells the operators of a sign-in by a recovery code */
async function openSession(context: Context, tx: Transaction, operator: Operator, how: object = {}): Promise<SignedIn> {
  const token = mintCredential('os');
  const userAgent = context.userAgent?.slice(0, 200) ?? null;
  const session = (await OPEN_SESSION.first(tx, [newId('ops'), operator.id, digest(token), userAgent]))!;
  const viewer = inSession(operator, session);
  await recordByOperator(tx, { ...context, viewer }, operator.id, {
    type: 'operator.signed_in',
    data: { session: session.id, ...how },
  });
  return { operator, token, expiresAt: session.expiresAt };
}

/** The open sessions of all operators for an owner, and otherwise the own ones. */
export const listOperatorSessions = ({ db, viewer }: Context): Promise<(OperatorSession & { name: string })[]> =>
  LIST_SESSIONS.all(db, [seesAll(viewer) ? null : viewer!.credentialId]);

const seesAll = (viewer: Viewer | null): boolean => viewer?.role !== undefined && mayCall(viewer.role, 'owner');

/**
 * Ends a session at once, by default that of the caller. Only an owner ends those of others.
 * @throws ApiError not_found, or validation_failed for a caller with a token
 */
export async function endOperatorSession(context: Context, id: string | null): Promise<void> {
  const { viewer } = context;
  const ended = id ?? viewer?.session;
  if (!ended) throw invalid('id', 'You act by a token, and have no session. Name the session to end.');
  await context.db.transaction(async (tx) => {
    await lockOperator(tx);
    const { operatorId } = found(await find(tx, OperatorSession, { id: ended }));
    if (!seesAll(viewer) && operatorId !== viewer?.credentialId) throw new ApiError('not_found');
    await remove(tx, OperatorSession, { id: ended });
    await recordByOperator(tx, context, operatorId, { type: 'operator.signed_out', data: { session: ended } });
    tx.changed({ kind: 'credential', accountId: OPERATOR_ACCOUNT, id: ended });
  });
}
