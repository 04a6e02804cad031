/** Changes the email, the PGP key, the recovery codes, and the days of balance.low of an account. */
import { Account } from '../../entities/accounts/account.ts';
import { update } from '../../entities/database/table.ts';
import { constraintOf, type Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { record } from '../../entities/history/record.ts';
import { actorOf, type Context, requireFeature } from '../context.ts';
import { invalid } from '../errors.ts';
import { findAccount, lockedOwnAccount } from './account.ts';
import { requirePassword } from './auth/change-password.ts';
import { proofOf } from './auth/scope.ts';
import { useSecondFactor } from './auth/second-factor.ts';
import { readPgpKey } from './recovery/pgp.ts';
import { replaceRecoveryCodes } from './recovery/recover.ts';

export interface AccountChange {
  email?: string | null | undefined;
  /** Empty: removes the key. */
  pgpPublicKey?: string | null | undefined;
  lowBalanceAlertDays?: number | null | undefined;
  /** Whether the account gets new recovery codes. */
  recoveryCodes?: boolean | null | undefined;
  currentPassword?: string | null | undefined;
  totpCode?: string | null | undefined;
}
export interface AccountChanged {
  account: Account;
  /** The new codes. Null: none were asked for. */
  recoveryCodes: string[] | null;
}

/**
 * A change of the ways into the account needs the password, and the second factor if there is one.
 * @throws ApiError endpoint_planned, validation_failed, wrong_password, invalid_totp, login_throttled, email_taken, or an error of `readPgpKey`
 */
export async function updateAccount(context: Context, change: AccountChange): Promise<AccountChanged> {
  requireFeature(context, 'account-update');
  const { email, pgpPublicKey, lowBalanceAlertDays, recoveryCodes, currentPassword } = change;
  if (recoveryCodes) requireFeature(context, 'recovery');
  const isOfLogin = changesLogin(change);
  if (isOfLogin && !currentPassword) throw invalid('current_password', 'current_password is required for this change.');
  const before = isOfLogin ? await requirePassword(context, currentPassword!) : await findAccount(context);
  const key = pgpPublicKey ? await readPgpKey(pgpPublicKey) : undefined;
  const set = {
    ...(email && { email }),
    ...(key && { pgpPublicKey: key.armored, pgpFingerprint: key.fingerprint }),
    ...(pgpPublicKey === '' && { pgpPublicKey: null, pgpFingerprint: null }),
    ...(lowBalanceAlertDays != null && { lowBalanceAlertDays }),
  };
  const work = (tx: Transaction) => write(context, tx, { before, set, change });
  const run = () => context.db.transaction(work).catch(refuseTaken);
  const name = before.email ?? before.id;
  // A wrong second factor counts as a failed login.
  return isOfLogin
    ? context.logins.attempt({ name, address: context.address, proof: proofOf(context.viewer) }, run)
    : run();
}

/** Whether the change concerns a way into the account. */
const changesLogin = ({ email, pgpPublicKey, recoveryCodes }: AccountChange): boolean =>
  Boolean(email || recoveryCodes || typeof pgpPublicKey === 'string');

async function write(
  context: Context,
  tx: Transaction,
  { before, set, change }: { before: Account; set: Partial<Account>; change: AccountChange },
): Promise<AccountChanged> {
  const account = await lockedOwnAccount(tx, context);
  const { id } = account;
  // Another request may have changed the password since the check.
  if (change.currentPassword && account.passwordHash !== before.passwordHash) throw new ApiError('wrong_password');
  const isOfLogin = changesLogin(change);
  if (isOfLogin && account.totpEnabled) await useSecondFactor(context, tx, id, change.totpCode);
  if (Object.keys(set).length) await update(tx, Account, { id }, set);
  const recoveryCodes = change.recoveryCodes ? await replaceRecoveryCodes(tx, id) : null;
  const changed = [
    ...(set.email ? ['email'] : []),
    ...(set.pgpPublicKey === undefined ? [] : ['pgp_public_key']),
    ...(set.lowBalanceAlertDays === undefined ? [] : ['low_balance_alert_days']),
    ...(recoveryCodes ? ['recovery_codes'] : []),
  ];
  if (changed.length) await record(tx, id, id, { type: 'account.updated', actor: actorOf(context), data: { changed } });
  return { account: await tx.manager.findOneByOrFail(Account, { id }), recoveryCodes };
}

function refuseTaken(error: unknown): never {
  throw constraintOf(error) === 'account_email' ? new ApiError('email_taken') : error;
}
