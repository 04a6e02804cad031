/**
 * Recovery of an account without its password. The owner answers a challenge that the PGP key reads, or sends a recovery code.
 * All sessions end; API keys stay. An unknown email gets the same answers. Codes and answers are too long to guess, so no
 * count of failures keeps the owner out.
 */
import { timingSafeEqual } from 'node:crypto';
import { Account } from '../../../entities/accounts/account.ts';
import {
  ADD_CHALLENGE,
  ADD_RECOVERY_CODES,
  COUNT_TRY,
  DELETE_RECOVERY_CODES,
  END_CHALLENGE,
  FIND_CHALLENGE,
  FIND_RECOVERY_CODE,
  USE_RECOVERY_CODE,
} from '../../../entities/accounts/recovery.ts';
import { Totp } from '../../../entities/accounts/totp.ts';
import { find, remove, update } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import { isId, newId, randomText } from '../../../entities/ids.ts';
import { digest } from '../../../entities/secrets.ts';
import { type Context, requireFeature } from '../../context.ts';
import { lockedAccount } from '../account.ts';
import { hashPassword, refuseWeakPassword } from '../auth/password.ts';
import { useSecondFactor } from '../auth/second-factor.ts';
import { openSession, type TokenPair } from '../auth/session.ts';
import { recordLoginChange } from '../auth/sessions.ts';
import { encryptTo } from './pgp.ts';

const CHALLENGE_SECONDS = 900;
const TRIES_MAX = 3;
/** 160 bits in Crockford's base32. */
const ANSWER_LENGTH = 32;
const CODES = 8;
/** Five groups of five letters and digits: 125 bits. */
const GROUPS = 5;

export interface Recovery {
  email?: string | null | undefined;
  challengeId?: string | null | undefined;
  challengeResponse?: string | null | undefined;
  recoveryCode?: string | null | undefined;
  newPassword?: string | null | undefined;
  totpCode?: string | null | undefined;
}
/** A challenge, or tokens at the end. */
export type Recovered = { challengeId: string; encryptedChallenge: string; expiresIn: number } | { tokens: TokenPair };

/** @throws ApiError endpoint_planned, validation_failed, weak_password, invalid_login, invalid_totp or login_throttled */
export function recover(context: Context, given: Recovery): Promise<Recovered> {
  requireFeature(context, 'recovery');
  const { email, challengeId, challengeResponse, recoveryCode, newPassword, totpCode } = given;
  if (challengeId && challengeResponse && newPassword && !email && !recoveryCode)
    return answerChallenge(context, challengeId, challengeResponse, newPassword);
  if (email && recoveryCode && newPassword && !challengeId)
    return recoverByCode(context, { email, recoveryCode, newPassword, totpCode });
  if (email && !challengeId && !challengeResponse && !recoveryCode && !newPassword) return challenge(context, email);
  throw new ApiError(
    'validation_failed',
    'Send email alone for a challenge. Or send challenge_id, challenge_response and new_password. Or email, recovery_code and new_password.',
  );
}

/** Encrypts a challenge to the key of the account. Any other email gets one that has no answer. */
async function challenge(context: Context, email: string): Promise<Recovered> {
  const account = await find(context.db, Account, { email });
  const key = account?.pgpPublicKey ?? null;
  const answer = randomText(ANSWER_LENGTH);
  const encryptedChallenge = await encryptTo(key, answer);
  const challengeId = newId('chl');
  const accountId = key === null ? null : account!.id;
  await ADD_CHALLENGE.all(context.db, [challengeId, accountId, email, answerDigest(key, answer), CHALLENGE_SECONDS]);
  return { challengeId, encryptedChallenge, expiresIn: CHALLENGE_SECONDS };
}

/** The digest of an answer, which is right for one key alone. The account may get another key while it is on its way. */
const answerDigest = (key: string | null, answer: string): Buffer => digest(`${key} ${answer}`);

async function answerChallenge(
  context: Context,
  id: string,
  response: string,
  newPassword: string,
): Promise<Recovered> {
  const known = isId('chl', id) && (await FIND_CHALLENGE.first(context.db, [id]));
  if (!known) throw ended();
  await refuseWeakPassword(newPassword, known.name, 'new_password');
  return context.logins.uncounted({ name: known.name, address: context.address }, async () => {
    if (!(await COUNT_TRY.first(context.db, [id, TRIES_MAX]))) throw ended();
    const isRight = ({ pgpPublicKey }: Account) =>
      pgpPublicKey !== null && timingSafeEqual(answerDigest(pgpPublicKey, response.trim()), known.digest);
    const asked = known.accountId ? await find(context.db, Account, { id: known.accountId }) : undefined;
    if (!asked || !isRight(asked)) throw new ApiError('invalid_login', 'The challenge_response is wrong.');
    const passwordHash = await hashPassword(newPassword, context.address);
    return context.db.transaction(async (tx) => {
      if (!(await END_CHALLENGE.first(tx, [id]))) throw ended();
      const account = await lockedAccount(tx, asked.id);
      // The owner, who knows the password, has changed the email or the key meanwhile.
      if (account.email !== known.name || !isRight(account)) throw ended();
      await remove(tx, Totp, { accountId: account.id });
      return { tokens: await admit(context, tx, account.id, { passwordHash, totpEnabled: false }, 'pgp') };
    });
  });
}

const ended = () => new ApiError('invalid_login', 'The challenge has ended. Send email alone for another one.');

type ByCode = { email: string; recoveryCode: string; newPassword: string; totpCode: string | null | undefined };

/** A code replaces the password alone: an account with a second factor also needs that. */
async function recoverByCode(
  context: Context,
  { email, recoveryCode, newPassword, totpCode }: ByCode,
): Promise<Recovered> {
  await refuseWeakPassword(newPassword, email, 'new_password');
  const codeDigest = digest(normalised(recoveryCode));
  const wrong = () => new ApiError('invalid_login', 'The email or the recovery_code is wrong, or the code was used.');
  const login = { name: email, address: context.address };
  const { accountId } = await context.logins.uncounted(login, async () => {
    const found = await FIND_RECOVERY_CODE.first(context.db, [email, codeDigest]);
    if (!found) throw wrong();
    return found;
  });
  const passwordHash = await hashPassword(newPassword, context.address);
  const run = () =>
    context.db.transaction(async (tx) => {
      const { id, email: name, totpEnabled } = await lockedAccount(tx, accountId);
      if (totpEnabled) await useSecondFactor(context, tx, id, totpCode);
      else await remove(tx, Totp, { accountId: id });
      // A wrong second factor above keeps the code.
      if (name !== email || !(await USE_RECOVERY_CODE.first(tx, [id, codeDigest]))) throw wrong();
      return { tokens: await admit(context, tx, id, { passwordHash }, 'code') };
    });
  // The second factor can be guessed. Only callers with a right code fill its count.
  return context.logins.attempt({ ...login, proof: 'recovery code' }, run);
}

/** Changes the login of the account, ends its sessions, and opens one. The caller holds the lock of the account. */
async function admit(
  context: Context,
  tx: Transaction,
  id: string,
  change: { passwordHash: string; totpEnabled?: boolean },
  by: 'pgp' | 'code',
): Promise<TokenPair> {
  const stranger = { ...context, viewer: null };
  await update(tx, Account, { id }, change);
  await recordLoginChange(stranger, tx, id, 'recovered', { by });
  return openSession(stranger, tx, id, 'recovery');
}

/** Codes may come with other letters' case, and without hyphens. */
const normalised = (code: string): string => code.toLowerCase().replace(/[^0-9a-z]/g, '');

/** Replaces the recovery codes of an account, and returns the new ones. The caller holds the lock of the account. */
export async function replaceRecoveryCodes(tx: Transaction, accountId: string): Promise<string[]> {
  const codes = Array.from({ length: CODES }, () => Array.from({ length: GROUPS }, () => randomText(5)).join('-'));
  await DELETE_RECOVERY_CODES.all(tx, [accountId]);
  await ADD_RECOVERY_CODES.all(tx, [accountId, codes.map((code) => digest(normalised(code)))]);
  return codes;
}
