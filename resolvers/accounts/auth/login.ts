/**
 * Login by email and password, and a second factor where there is one. A wrong email takes as long as a wrong password,
 * and gets the same answer.
 */

import { Account } from '../../../entities/accounts/account.ts';
import { PendingLogin } from '../../../entities/accounts/totp.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import { newId } from '../../../entities/ids.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import { credentialKind, digest, mintCredential } from '../../../entities/secrets.ts';
import type { Context } from '../../context.ts';
import { verifyPassword } from './password.ts';
import { useSecondFactor } from './second-factor.ts';
import { type LoggedIn, openSession } from './session.ts';

const PENDING_SECONDS = 300;
/** A pending login is over after so many. */
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
  const attempt = { name: email, address: context.address };
  return context.logins.attempt(attempt, async () => {
    const found = await context.db.source.manager.findOneBy(Account, { email });
    if (!(await verifyPassword(found?.passwordHash, password)) || !found) throw new ApiError('invalid_login');
    const result = await context.db.transaction(async (tx) => {
      await lockAccount(tx, found.id);
      const account = await tx.manager.findOneByOrFail(Account, { id: found.id });
      // It was changed meanwhile, which has ended all sessions.
      if (account.passwordHash !== found.passwordHash) throw new ApiError('invalid_login');
      if (account.totpEnabled && !totpCode) return awaitCode(tx, account.id);
      if (account.totpEnabled) await useSecondFactor(context, tx, account.id, totpCode);
      return { account, tokens: await openSession(context, tx, account.id, 'login') };
    });
    if ('tokens' in result) context.logins.remember(attempt);
    return result;
  });
}

async function awaitCode(tx: Transaction, accountId: string): Promise<AwaitsCode> {
  const loginToken = mintCredential('lt');
  await tx.query('delete from pending_login where account_id = $1 and expires_at <= now()', [accountId]);
  await tx.manager.insert(PendingLogin, {
    id: newId('login'),
    accountId,
    digest: digest(loginToken),
    expiresAt: new Date(Date.now() + PENDING_SECONDS * 1000),
  });
  return { loginToken, expiresIn: PENDING_SECONDS };
}

/** Completes a pending login. @throws ApiError invalid_totp, login_token_expired or login_throttled */
export async function loginTotp(
  context: Context,
  { loginToken, totpCode }: { loginToken: string; totpCode: string },
): Promise<LoggedIn> {
  const known = credentialKind(loginToken) === 'lt' && (await findPending(context, loginToken));
  if (!known) throw new ApiError('login_token_expired');
  const attempt = { name: known.name, address: context.address };
  return context.logins.attempt(attempt, async () => {
    const outcome = await context.db.transaction((tx) => complete(context, tx, known, totpCode));
    // Thrown out here, because the wrong code must be counted.
    if (outcome instanceof ApiError) throw outcome;
    context.logins.remember(attempt);
    return outcome;
  });
}

type Pending = Pick<PendingLogin, 'id' | 'accountId'> & { name: string };

async function findPending({ db }: Context, loginToken: string): Promise<Pending | undefined> {
  const [pending] = await db.query<Pending>(
    `select pending_login.id, account_id, coalesce(account.email, account.id) as name
    from pending_login join account on account.id = account_id where digest = $1`,
    [digest(loginToken)],
  );
  return pending;
}

async function complete(
  context: Context,
  tx: Transaction,
  { id, accountId }: Pending,
  totpCode: string,
): Promise<LoggedIn | ApiError> {
  await lockAccount(tx, accountId);
  const pending = await tx.manager.findOneBy(PendingLogin, { id });
  if (!pending || pending.expiresAt.getTime() <= Date.now()) return new ApiError('login_token_expired');
  try {
    await useSecondFactor(context, tx, accountId, totpCode);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (pending.wrongCodes + 1 >= WRONG_CODES_MAX) await tx.manager.delete(PendingLogin, { id });
    else await tx.manager.increment(PendingLogin, { id }, 'wrongCodes', 1);
    return error;
  }
  await tx.manager.delete(PendingLogin, { id });
  const account = await tx.manager.findOneByOrFail(Account, { id: accountId });
  return { account, tokens: await openSession(context, tx, accountId, 'login') };
}
