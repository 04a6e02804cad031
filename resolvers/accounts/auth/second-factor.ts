/** The second factor of a login: a code of the authenticator, or a recovery code. */
import { createHmac, randomBytes } from 'node:crypto';
import { LessThan } from 'typeorm';
import { RECOVERY_CODES, type RecoveryCodes, TOTP_SEED, Totp } from '../../../entities/accounts/totp.ts';
import { find, update } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import { randomText } from '../../../entities/ids.ts';
import type { Context } from '../../context.ts';
import { seedBytes, stepOf } from './one-time-password.ts';

const RECOVERY_CODES_COUNT = 10;

/**
 * Uses up a code. The service accepts each recovery code once. It accepts a step of the authenticator once, and then no
 * earlier step. The caller holds the lock of the account.
 * @throws ApiError invalid_totp
 */
export async function useSecondFactor(
  context: Context,
  tx: Transaction,
  accountId: string,
  code: string | null | undefined,
): Promise<void> {
  if (!code) throw new ApiError('invalid_totp', 'The account has two-factor authentication. Send totp_code.');
  const used = isRecoveryCode(code)
    ? (await useRecoveryCode(context, tx, accountId, code)) !== undefined
    : await useTotp(context, tx, accountId, code);
  if (!used) throw new ApiError('invalid_totp');
}

/** Whether a code has the form of a recovery code. */
export const isRecoveryCode = (code: string): boolean => code.includes('-');

/** Uses up a code of the authenticator. @returns whether the code was right and unused */
export async function useTotp(context: Context, tx: Transaction, accountId: string, code: string): Promise<boolean> {
  const totp = await find(tx, Totp, { accountId });
  if (!totp) return false;
  const step = stepOf(seedBytes(TOTP_SEED.open(context.vault, totp.seed, accountId)), code);
  if (step === undefined) return false;
  return (await update(tx, Totp, { accountId, lastStep: LessThan(step) }, { lastStep: step })) === 1;
}

/** Uses up a recovery code. @returns how many are left, or undefined if the code was wrong or used */
export async function useRecoveryCode(
  context: Context,
  tx: Transaction,
  accountId: string,
  code: string,
): Promise<number | undefined> {
  const totp = await find(tx, Totp, { accountId });
  if (!totp?.recoveryCodes) return undefined;
  const { key, digests } = JSON.parse(
    RECOVERY_CODES.open(context.vault, totp.recoveryCodes, accountId),
  ) as RecoveryCodes;
  const used = digestOf(key, accountId, code.toLowerCase());
  const unused = digests.filter((digest) => digest !== used);
  if (unused.length === digests.length) return undefined;
  await keep(context, tx, accountId, { key, digests: unused });
  return unused.length;
}

/** Replaces the recovery codes by ten new ones, which the service shows once. */
export async function newRecoveryCodes(context: Context, tx: Transaction, accountId: string): Promise<string[]> {
  const codes = new Set<string>();
  while (codes.size < RECOVERY_CODES_COUNT) codes.add(newRecoveryCode());
  const key = randomBytes(32).toString('base64');
  await keep(context, tx, accountId, { key, digests: [...codes].map((code) => digestOf(key, accountId, code)) });
  return [...codes];
}

async function keep({ vault }: Context, tx: Transaction, accountId: string, codes: RecoveryCodes): Promise<void> {
  const recoveryCodes = RECOVERY_CODES.seal(vault, JSON.stringify(codes), accountId);
  await update(tx, Totp, { accountId }, { recoveryCodes });
}

const digestOf = (key: string, accountId: string, code: string): string =>
  createHmac('sha256', Buffer.from(key, 'base64')).update(`recovery_code:${accountId}\0${code}`).digest('base64');

/** Returns a code `xxxx-xxxx` of 40 bits, which is enough because ten wrong attempts lock the login. */
function newRecoveryCode(): string {
  const text = randomText(8);
  return `${text.slice(0, 4)}-${text.slice(4)}`;
}
