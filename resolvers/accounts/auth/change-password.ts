/** Checks and changes the password of an account. */
import { Account } from '../../../entities/accounts/account.ts';
import { update } from '../../../entities/database/table.ts';
import { ApiError } from '../../../entities/errors.ts';
import type { Context } from '../../context.ts';
import { findAccount, lockedAccount } from '../account.ts';
import { hashPassword, refuseWeakPassword, verifyPassword } from './password.ts';
import { useSecondFactor } from './second-factor.ts';
import { recordLoginChange } from './sessions.ts';

/** Returns the caller's account, if the password is right. @throws ApiError wrong_password or login_throttled */
export async function requirePassword(context: Context, password: string): Promise<Account> {
  const account = await findAccount(context);
  await context.logins.attempt(
    { name: account.email ?? account.id, address: context.address, proof: 'credential' },
    async () => {
      if (!(await verifyPassword(account.passwordHash, password))) throw new ApiError('wrong_password');
    },
  );
  return account;
}

export interface PasswordChange {
  currentPassword: string;
  newPassword: string;
  totpCode?: string | null | undefined;
}

/**
 * Changes the password. All other sessions end; API keys stay.
 * @returns how many sessions ended
 * @throws ApiError wrong_password, weak_password, invalid_totp or login_throttled
 */
export async function changePassword(context: Context, change: PasswordChange): Promise<number> {
  const { currentPassword, newPassword, totpCode } = change;
  const { id: accountId, email, passwordHash: checked } = await requirePassword(context, currentPassword);
  refuseWeakPassword(newPassword, email ?? '', 'new_password');
  const passwordHash = await hashPassword(newPassword);
  return context.logins.attempt({ name: email ?? accountId, address: context.address, proof: 'credential' }, () =>
    context.db.transaction(async (tx) => {
      const account = await lockedAccount(tx, accountId);
      // Another request may have changed the password since the check.
      if (account.passwordHash !== checked) throw new ApiError('wrong_password');
      if (account.totpEnabled) await useSecondFactor(context, tx, accountId, totpCode);
      await update(tx, Account, { id: accountId }, { passwordHash });
      return recordLoginChange(context, tx, accountId, 'password_changed');
    }),
  );
}
