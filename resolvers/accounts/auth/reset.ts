/** Gives the owner of an account a new way in, for the operator. The proof of the owner stays as a note. */
import { Account } from '../../../entities/accounts/account.ts';
import { DELETE_RECOVERY_CODES } from '../../../entities/accounts/recovery.ts';
import { Totp } from '../../../entities/accounts/totp.ts';
import { find, remove, update } from '../../../entities/database/table.ts';
import { ApiError } from '../../../entities/errors.ts';
import { randomText } from '../../../entities/ids.ts';
import type { Context } from '../../context.ts';
import { found } from '../../errors.ts';
import { lockedAccount } from '../account.ts';
import { writeNote } from '../customer.ts';
import { hashPassword } from './password.ts';
import { recordLoginChange } from './sessions.ts';

/** A new password, which the service shows once. */
export interface PasswordReset {
  password: string;
  sessionsRevoked: number;
}

/** 100 bits in Crockford's base32. */
const PASSWORD_LENGTH = 20;

/**
 * Gives an account a new password. All sessions and recovery codes end, and so does a setup of a second factor that was begun. API keys, OAuth
 * clients and a second factor stay.
 * @param proof the evidence of the owner
 * @throws ApiError not_found, or validation_failed for an account without a password
 */
export async function resetPassword(context: Context, id: string, proof: string): Promise<PasswordReset> {
  const password = randomText(PASSWORD_LENGTH);
  const passwordHash = await hashPassword(password);
  return context.db.transaction(async (tx) => {
    const account = await lockedAccount(tx, id);
    if (!account.passwordHash)
      throw new ApiError(
        'validation_failed',
        'The account has no password. Give its OAuth client a new secret by resetClient.',
      );
    await writeNote(tx, context, id, `Password reset. Proof: ${proof}`);
    if (!account.totpEnabled) await remove(tx, Totp, { accountId: id });
    await DELETE_RECOVERY_CODES.all(tx, [id]);
    await update(tx, Account, { id }, { passwordHash, pgpPublicKey: null, pgpFingerprint: null });
    return { password, sessionsRevoked: await recordLoginChange(context, tx, id, 'password_reset') };
  });
}

/**
 * Turns the second factor of an account off, so that its owner can log in with the password alone. All sessions end.
 * @param proof the evidence of the owner
 * @throws ApiError not_found or totp_not_enabled
 */
export async function resetSecondFactor(context: Context, id: string, proof: string): Promise<Account> {
  return context.db.transaction(async (tx) => {
    if (!(await lockedAccount(tx, id)).totpEnabled) throw new ApiError('totp_not_enabled');
    await writeNote(tx, context, id, `Second factor reset. Proof: ${proof}`);
    await remove(tx, Totp, { accountId: id });
    await update(tx, Account, { id }, { totpEnabled: false });
    await recordLoginChange(context, tx, id, 'totp_reset');
    return found(await find(tx, Account, { id }));
  });
}
