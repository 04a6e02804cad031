/** The second factor as it is asked for: a code of the authenticator, or a recovery code. */
import { RecoveryCode, seedContext, Totp } from '../../../entities/accounts/totp.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import { randomText } from '../../../entities/ids.ts';
import type { Context } from '../../context.ts';
import { seedBytes, stepOf } from './one-time-password.ts';

const RECOVERY_CODES = 10;

/**
 * Uses a code up: a step of the authenticator is accepted once, and none before it afterwards; a recovery code once.
 * To be called under the lock of the account.
 * @throws ApiError invalid_totp
 */
export async function useSecondFactor(
  context: Context,
  tx: Transaction,
  accountId: string,
  code: string | null | undefined,
): Promise<void> {
  if (!code) throw new ApiError('invalid_totp', 'The account has a second factor: send totp_code.');
  const used = code.includes('-')
    ? await useRecoveryCode(context, tx, accountId, code)
    : await useTotp(context, tx, accountId, code);
  if (!used) throw new ApiError('invalid_totp');
}

/** Whether the code of the authenticator is right, and was not used; then it is now. */
export async function useTotp(context: Context, tx: Transaction, accountId: string, code: string): Promise<boolean> {
  const totp = await tx.manager.findOneBy(Totp, { accountId });
  if (!totp) return false;
  const step = stepOf(seedBytes(context.vault.open(totp.seed, seedContext(accountId))), code);
  if (step === undefined) return false;
  const accepted = await tx.query(
    'update totp set last_step = $2 where account_id = $1 and last_step < $2 returning account_id',
    [accountId, step],
  );
  return accepted.length === 1;
}

async function useRecoveryCode(context: Context, tx: Transaction, accountId: string, code: string): Promise<boolean> {
  const used = await tx.query('delete from recovery_code where account_id = $1 and digest = $2 returning digest', [
    accountId,
    context.vault.keyedDigest(code.toLowerCase(), recoveryContext(accountId)),
  ]);
  return used.length === 1;
}

const recoveryContext = (accountId: string) => `recovery_code:${accountId}`;

/** Ten new codes instead of those that there were. They are shown once. */
export async function newRecoveryCodes(context: Context, tx: Transaction, accountId: string): Promise<string[]> {
  const codes = new Set<string>();
  while (codes.size < RECOVERY_CODES) codes.add(newRecoveryCode());
  const rows = [...codes].map((code) => ({
    accountId,
    digest: context.vault.keyedDigest(code, recoveryContext(accountId)),
  }));
  await tx.manager.delete(RecoveryCode, { accountId });
  await tx.manager.insert(RecoveryCode, rows);
  return [...codes];
}

/** `xxxx-xxxx`, 40 bits: enough for what ten wrong tries lock. */
function newRecoveryCode(): string {
  const text = randomText(8);
  return `${text.slice(0, 4)}-${text.slice(4)}`;
}
