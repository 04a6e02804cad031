/** Two-factor authentication: off, in setup for ten minutes, or on. */
import { Account } from '../../../entities/accounts/account.ts';
import { BEGIN_SETUP, CONFIRM_SEED, FIND_SETUP, TOTP_SEED, Totp } from '../../../entities/accounts/totp.ts';
import { find, remove, update } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import { record } from '../../../entities/history/record.ts';
import { actorOf, type Context } from '../../context.ts';
import { findAccount, lockedOwnAccount } from '../account.ts';
import { requirePassword } from './change-password.ts';
import { DIGITS, newSeed, PERIOD_SECONDS } from './one-time-password.ts';
import { proofOf } from './scope.ts';
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
  const { id: accountId, email, passwordHash: checked } = await requirePassword(context, password);
  return context.db.transaction(async (tx) => {
    const { totpEnabled, passwordHash } = await lockedOwnAccount(tx, context);
    // Another request may have changed the password since the check.
    if (passwordHash !== checked) throw new ApiError('wrong_password');
    if (totpEnabled) throw new ApiError('totp_already_enabled');
    return beginSetup(context, tx, accountId, email ?? accountId);
  });
}

/**
 * Keeps a new seed of an account or an operator. The caller holds the lock of the account.
 * @param name shown by authenticators
 * @param seconds the time for the code that confirms the seed
 */
export async function beginSetup(
  { vault }: Context,
  tx: Transaction,
  id: string,
  name: string,
  seconds = SETUP_SECONDS,
): Promise<TotpSetup> {
  const secret = newSeed();
  await BEGIN_SETUP.all(tx, [id, TOTP_SEED.seal(vault, secret, id), seconds]);
  return { secret, expiresIn: Math.floor(seconds), provisioningUri: provisioningUri(name, secret) };
}

/** Returns the seed that a code can still confirm, or keeps a new one. The parameters are those of `beginSetup`. */
export async function continueSetup(
  context: Context,
  tx: Transaction,
  id: string,
  name: string,
  seconds: number,
): Promise<TotpSetup> {
  const totp = (await FIND_SETUP.first(tx, [id])) && (await find(tx, Totp, { accountId: id }));
  if (!totp) return beginSetup(context, tx, id, name, seconds);
  const secret = TOTP_SEED.open(context.vault, totp.seed, id);
  return { secret, expiresIn: Math.floor(seconds), provisioningUri: provisioningUri(name, secret) };
}

/** Confirms the seed of an account or an operator with one of its codes. @throws ApiError totp_setup_missing or invalid_totp */
export async function confirmSetup(context: Context, tx: Transaction, id: string, code: string): Promise<void> {
  if (!(await FIND_SETUP.first(tx, [id]))) throw new ApiError('totp_setup_missing');
  if (!(await useTotp(context, tx, id, code))) throw new ApiError('invalid_totp');
  await CONFIRM_SEED.all(tx, [id]);
}

/** Returns the URI that authenticators read from a QR code (Key URI Format). */
function provisioningUri(name: string, secret: string): string {
  const parameters = `secret=${secret}&issuer=${ISSUER}&algorithm=SHA1&digits=${DIGITS}&period=${PERIOD_SECONDS}`;
  return `otpauth://totp/${ISSUER}:${encodeURIComponent(name)}?${parameters}`;
}

/**
 * Confirms the seed with one of its codes, and turns two-factor authentication on. All other sessions end.
 * @returns the recovery codes
 * @throws ApiError totp_already_enabled, totp_setup_missing, invalid_totp or login_throttled
 */
export const enableTotp = (context: Context, code: string): Promise<string[]> =>
  withAttempt(context, async (tx, accountId, totpEnabled) => {
    if (totpEnabled) throw new ApiError('totp_already_enabled');
    await confirmSetup(context, tx, accountId, code);
    await update(tx, Account, { id: accountId }, { totpEnabled: true });
    await recordLoginChange(context, tx, accountId, 'totp_enabled');
    return newRecoveryCodes(context, tx, accountId);
  });

/** Replaces the recovery codes, and returns the new ones. @throws ApiError totp_not_enabled, invalid_totp or login_throttled */
export const renewRecoveryCodes = (context: Context, code: string): Promise<string[]> =>
  withCode(context, code, async (tx, accountId) => {
    await record(tx, accountId, accountId, { type: 'account.recovery_codes_renewed', actor: actorOf(context) });
    return newRecoveryCodes(context, tx, accountId);
  });

/**
 * Turns two-factor authentication off. All other sessions end.
 * @throws ApiError totp_not_enabled, invalid_totp or login_throttled
 */
export const disableTotp = (context: Context, code: string): Promise<void> =>
  withCode(context, code, async (tx, accountId) => {
    await remove(tx, Totp, { accountId });
    await update(tx, Account, { id: accountId }, { totpEnabled: false });
    await recordLoginChange(context, tx, accountId, 'totp_disabled');
  });

/** Uses up a code of the second factor, and does the work in the same transaction. It holds the lock of the account. */
const withCode = <T>(context: Context, code: string, work: (tx: Transaction, accountId: string) => Promise<T>) =>
  withAttempt(context, async (tx, accountId, totpEnabled) => {
    if (!totpEnabled) throw new ApiError('totp_not_enabled');
    await useSecondFactor(context, tx, accountId, code);
    return work(tx, accountId);
  });

/** Does work that checks a code, under the lock of the account, and counts wrong codes. */
async function withAttempt<T>(
  context: Context,
  work: (tx: Transaction, accountId: string, totpEnabled: boolean) => Promise<T>,
): Promise<T> {
  const { id: accountId, email } = await findAccount(context);
  return context.logins.attempt(
    { name: email ?? accountId, address: context.address, proof: proofOf(context.viewer) },
    () =>
      context.db.transaction(async (tx) => {
        const { totpEnabled } = await lockedOwnAccount(tx, context);
        return work(tx, accountId, totpEnabled);
      }),
  );
}
