/** Checks and changes the password of an account. */
import { Account } from '../../../entities/accounts/account.ts';
import { DELETE_RECOVERY_CODES } from '../../../entities/accounts/recovery.ts';
import { Totp } from '../../../entities/accounts/totp.ts';
import { remove, update } from '../../../entities/database/table.ts';
import { ApiError } from '../../../entities/errors.ts';
import type { Context } from '../../context.ts';
import { findAccount, lockedOwnAccount } from '../account.ts';
import { hashPassword, refuseWeakPassword, verifyPassword } from './password.ts';
import { type Revoked, revokeEverything } from './revoke.ts';
import { proofOf } from './scope.ts';
import { useSecondFactor } from './second-factor.ts';
import { recordLoginChange } from './sessions.ts';

/** Returns the caller's account, if the password is right. @throws ApiError wrong_password or login_throttled */
export async function requirePassword(context: Context, password: string): Promise<Account> {
  const account = await findAccount(context);
  await context.logins.attempt(
    { name: account.email ?? account.id, address: context.address, proof: proofOf(context.viewer) },
    async () => {
      if (!(await verifyPassword(account.passwordHash, password, context.address)))
        throw new ApiError('wrong_password');
    },
  );
  return account;
}

export interface PasswordChange {
  currentPassword: string;
  newPassword: string;
  totpCode?: string | null | undefined;
  /** EVERYTHING: also API keys, OAuth clients, recovery codes, and the secrets of webhooks, which are disabled. */
  revoke: 'SESSIONS' | 'EVERYTHING';
}

/** The numbers of ended things. The numbers that only EVERYTHING can have are absent otherwise. */
export type PasswordChanged = Pick<Revoked, 'sessionsRevoked'> & Partial<Revoked>;

/**
 * Changes the password, also of a suspended account, so that its owner can throw a thief out. All other sessions end, and with EVERYTHING also the credential of the caller, unless it is a login.
 * @throws ApiError wrong_password, weak_password, validation_failed for the same password, invalid_totp or login_throttled
 */
export async function changePassword(context: Context, change: PasswordChange): Promise<PasswordChanged> {
  const { currentPassword, newPassword, totpCode, revoke } = change;
  const { id: accountId, email, passwordHash: checked } = await requirePassword(context, currentPassword);
  await refuseWeakPassword(newPassword, email ?? '', 'new_password');
  if (newPassword === currentPassword)
    throw new ApiError('validation_failed', undefined, {
      errors: [
        { field: 'new_password', code: 'unchanged', message: 'Choose a password that differs from the present one.' },
      ],
    });
  const passwordHash = await hashPassword(newPassword, context.address);
  return context.logins.attempt(
    { name: email ?? accountId, address: context.address, proof: proofOf(context.viewer) },
    () =>
      context.db.transaction(async (tx) => {
        const account = await lockedOwnAccount(tx, context, 'while suspended');
        // Another request may have changed the password since the check.
        if (account.passwordHash !== checked) throw new ApiError('wrong_password');
        if (account.totpEnabled) await useSecondFactor(context, tx, accountId, totpCode);
        // A setup that the old password began ends with that password.
        else await remove(tx, Totp, { accountId });
        await update(tx, Account, { id: accountId }, { passwordHash });
        const sessionsRevoked = await recordLoginChange(context, tx, accountId, 'password_changed');
        if (revoke === 'SESSIONS') return { sessionsRevoked };
        // A thief of the password may have made or read the codes, and set a PGP key.
        await DELETE_RECOVERY_CODES.all(tx, [accountId]);
        await update(tx, Account, { id: accountId }, { pgpPublicKey: null, pgpFingerprint: null });
        const revoked = await revokeEverything(context, tx, accountId);
        return { ...revoked, sessionsRevoked: sessionsRevoked + revoked.sessionsRevoked };
      }),
  );
}
