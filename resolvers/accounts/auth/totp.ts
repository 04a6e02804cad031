/** Two-factor authentication: off, in setup for ten minutes, or on. */
import { Account } from '../../../entities/accounts/account.ts';
import {
  BEGIN_SETUP,
  CONFIRM_SEED,
  FIND_SETUP,
  RecoveryCode,
  seedContext,
  Totp,
} from '../../../entities/accounts/totp.ts';
import { remove, update } from '../../../entities/database/table.ts';
import { ApiError } from '../../../entities/errors.ts';
import { accountOf, type Context } from '../../context.ts';
import { findAccount, lockedAccount } from '../account.ts';
import { requirePassword } from './change-password.ts';
import { DIGITS, newSeed, PERIOD_SECONDS } from './one-time-password.ts';
import { newRecoveryCodes, useSecondFactor, useTotp } from './second-factor.ts';
import { recordLoginChange } from './sessions.ts';

const SETUP_SECONDS = 600;
const ISSUER = 'Freehold';

export interface TotpSetup {
  provisioningUri: string;
  secret: string;
  expiresIn: number;
}

/** Creates a seed. Logins need no code until the caller confirms it. @throws ApiError wrong_password or totp_already_enabled */
export async function setupTotp(context: Context, password: string): Promise<TotpSetup> {
  const { id: accountId, email } = await requirePassword(context, password);
  const secret = newSeed();
  await context.db.transaction(async (tx) => {
    const { totpEnabled } = await lockedAccount(tx, accountId);
    if (totpEnabled) throw new ApiError('totp_already_enabled');
    await BEGIN_SETUP.all(tx, [accountId, context.vault.seal(secret, seedContext(accountId)), SETUP_SECONDS]);
  });
  return { secret, expiresIn: SETUP_SECONDS, provisioningUri: provisioningUri(email ?? accountId, secret) };
}

/** Returns the URI that authenticators read from a QR code (Key URI Format). */
function provisioningUri(name: string, secret: string): string {
  const parameters = `secret=${secret}&issuer=${ISSUER}&algorithm=SHA1&digits=${DIGITS}&period=${PERIOD_SECONDS}`;
  return `otpauth://totp/${ISSUER}:${encodeURIComponent(name)}?${parameters}`;
}

/**
 * Confirms the seed with one of its codes, and turns two-factor authentication on. All other sessions end.
 * @returns the recovery codes
 * @throws ApiError totp_already_enabled, totp_setup_missing or invalid_totp
 */
export function enableTotp(context: Context, code: string): Promise<string[]> {
  const accountId = accountOf(context);
  return context.db.transaction(async (tx) => {
    const { totpEnabled } = await lockedAccount(tx, accountId);
    if (totpEnabled) throw new ApiError('totp_already_enabled');
    if (!(await FIND_SETUP.first(tx, [accountId]))) throw new ApiError('totp_setup_missing');
    if (!(await useTotp(context, tx, accountId, code))) throw new ApiError('invalid_totp');
    await CONFIRM_SEED.all(tx, [accountId]);
    await update(tx, Account, { id: accountId }, { totpEnabled: true });
    await recordLoginChange(context, tx, accountId, 'totp_enabled');
    return newRecoveryCodes(context, tx, accountId);
  });
}

/** Turns two-factor authentication off. All other sessions end. @throws ApiError totp_not_enabled or invalid_totp */
export async function disableTotp(context: Context, code: string): Promise<void> {
  const { id: accountId, email } = await findAccount(context);
  await context.logins.attempt({ name: email ?? accountId, address: context.address, proof: 'credential' }, () =>
    context.db.transaction(async (tx) => {
      const { totpEnabled } = await lockedAccount(tx, accountId);
      if (!totpEnabled) throw new ApiError('totp_not_enabled');
      await useSecondFactor(context, tx, accountId, code);
      await remove(tx, Totp, { accountId });
      await remove(tx, RecoveryCode, { accountId });
      await update(tx, Account, { id: accountId }, { totpEnabled: false });
      await recordLoginChange(context, tx, accountId, 'totp_disabled');
    }),
  );
}
