/**
 * Login by email, password, and the second factor of accounts that have one. A wrong email takes as long as a wrong
 * password, and gets the same answer.
 */
import { Account } from '../../../entities/accounts/account.ts';
import {
  ADD_PENDING_LOGIN,
  COUNT_WRONG_CODES,
  DELETE_ENDED_LOGINS,
  FIND_PENDING_LOGIN,
  PendingLogin,
} from '../../../entities/accounts/totp.ts';
import type { Database } from '../../../entities/database/database.ts';
import { find, remove, update } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import { newId } from '../../../entities/ids.ts';
import { credentialKind, digest, mintCredential } from '../../../entities/secrets.ts';
import type { Context } from '../../context.ts';
import { lockedAccount } from '../account.ts';
import type { SecurityLog } from '../security-log.ts';
import { verifyPassword } from './password.ts';
import { proofOf } from './scope.ts';
import { useSecondFactor } from './second-factor.ts';
import { type LoggedIn, openSession } from './session.ts';
import type { Proof } from './throttle.ts';

const PENDING_SECONDS = 300;
/** The wrong codes after which a pending login ends. */
const WRONG_CODES_MAX = 5;

/** A login that waits for its second factor. */
export interface AwaitsCode {
  loginToken: string;
  expiresIn: number;
}
export type LoginResult = LoggedIn | AwaitsCode;

export interface Login {
  email: string;
  password: string;
  totpCode?: string | null | undefined;
}

/** @throws ApiError invalid_login, invalid_totp or login_throttled */
export async function login(context: Context, { email, password, totpCode }: Login): Promise<LoginResult> {
  const attempt = { name: email, address: context.address, proof: await proofFor(context, email) };
  return context.logins.attempt(attempt, async () => {
    const found = await find(context.db, Account, { email });
    if (!(await verifyPassword(found?.passwordHash, password, context.address)) || !found)
      throw new ApiError('invalid_login');
    const result = await context.db.transaction(async (tx) => {
      const account = await lockedAccount(tx, found.id);
      // Another request has changed the password since the check, and ended all sessions.
      if (account.passwordHash !== found.passwordHash) throw new ApiError('invalid_login');
      if (account.totpEnabled && !totpCode) return awaitCode(tx, account.id);
      if (account.totpEnabled) await useSecondFactor(context, tx, account.id, totpCode);
      return { account, tokens: await openSession(context, tx, account.id, 'login') };
    });
    if ('tokens' in result) void context.logins.remember(attempt);
    return result;
  });
}

/** Returns a proof if the caller has sent another credential of the account. */
async function proofFor({ db, viewer }: Context, name: string): Promise<Proof | undefined> {
  const proof = proofOf(viewer);
  const account = proof && viewer?.accountId && (await find(db, Account, { id: viewer.accountId }));
  return account && (account.email ?? account.id) === name ? proof : undefined;
}

async function awaitCode(tx: Transaction, accountId: string): Promise<AwaitsCode> {
  const loginToken = mintCredential('lt');
  await ADD_PENDING_LOGIN.all(tx, [newId('login'), accountId, digest(loginToken), PENDING_SECONDS]);
  return { loginToken, expiresIn: PENDING_SECONDS };
}

/**
 * Deletes the logins that waited too long for a code. Tells their owners of those without any code, because the caller knew
 * the password. A wrong code was told at once.
 */
export async function sweepPendingLogins(db: Database, security: SecurityLog): Promise<void> {
  for (const { accountId, wrongCodes } of await DELETE_ENDED_LOGINS.all(db))
    if (!wrongCodes) security.note({ type: 'session.code_failed', account: accountId, address: null });
}

/** Completes a pending login. @throws ApiError invalid_totp, login_token_expired or login_throttled */
export async function loginTotp(
  context: Context,
  { loginToken, totpCode }: { loginToken: string; totpCode: string },
): Promise<LoggedIn> {
  const isToken = credentialKind(loginToken) === 'lt';
  const known = isToken && (await FIND_PENDING_LOGIN.first(context.db, [digest(loginToken)]));
  if (!known) throw new ApiError('login_token_expired');
  const proof = (await proofFor(context, known.name)) ?? 'password';
  const attempt = { name: known.name, address: context.address, proof };
  return context.logins.attempt(attempt, async () => {
    const outcome = await context.db.transaction((tx) => complete(context, tx, known, totpCode));
    // The throw is outside the transaction, so that the count of wrong codes stays.
    if (outcome instanceof ApiError) throw outcome;
    void context.logins.remember(attempt);
    return outcome;
  });
}

async function complete(
  context: Context,
  tx: Transaction,
  { id, accountId }: Pick<PendingLogin, 'id' | 'accountId'>,
  totpCode: string,
): Promise<LoggedIn | ApiError> {
  const account = await lockedAccount(tx, accountId);
  const pending = await COUNT_WRONG_CODES.first(tx, [id]);
  if (!pending) return new ApiError('login_token_expired');
  try {
    await useSecondFactor(context, tx, accountId, totpCode);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const wrongCodes = pending.wrongCodes + 1;
    if (wrongCodes >= WRONG_CODES_MAX) await remove(tx, PendingLogin, { id });
    else await update(tx, PendingLogin, { id }, { wrongCodes });
    return error;
  }
  await remove(tx, PendingLogin, { id });
  return { account, tokens: await openSession(context, tx, accountId, 'login') };
}
