/** Login by email and password. A wrong email takes as long as a wrong password, and gets the same answer. */
import { Account } from '../../entities/account.ts';
import { ApiError } from '../../entities/errors.ts';
import type { Context } from '../context.ts';
import { verifyPassword } from './password.ts';
import { type LoggedIn, openSession } from './session.ts';

/** @throws ApiError invalid_login */
export async function login(
  context: Context,
  { email, password }: { email: string; password: string },
): Promise<LoggedIn> {
  const account = await context.db.source.manager.findOneBy(Account, { email });
  if (!(await verifyPassword(account?.passwordHash, password)) || !account) throw new ApiError('invalid_login');
  const tokens = await context.db.transaction((tx) => openSession(context, tx, account.id, 'login'));
  return { account, tokens };
}
