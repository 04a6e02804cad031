/** Step-up: a request that creates credentials proves the second factor again, unless its login is recent. */
import { FIND_LOGIN } from '../../../entities/accounts/credential.ts';
import { ApiError } from '../../../entities/errors.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import type { Context } from '../../context.ts';
import { proofOf } from './scope.ts';
import { useSecondFactor } from './second-factor.ts';

/** A login with its second factor is recent for so long. */
const RECENT_SECONDS = 15 * 60;

/**
 * Demands a code from access tokens of logins whose account has a second factor. API keys and OAuth tokens need none: they
 * act without a person. Checks a given code in any case, because a kept answer is given again for the same code.
 * @param outside calls to the outside, which the request needs. They come before the transaction that uses up the code
 * @throws ApiError step_up_required, invalid_totp or login_throttled, or an error of `outside`
 */
export async function requireStepUp(
  context: Context,
  code: string | null | undefined,
  outside: () => Promise<unknown> = async () => {},
): Promise<void> {
  const useCode = await askedCode(context, code);
  await outside();
  await useCode?.();
}

/**
 * Checks the code of a repeated request, for its kept answer. The throttle bounds guesses at the code of the first request,
 * too.
 * @param isSame whether the first request had the same code, which is used up
 * @throws ApiError invalid_totp or login_throttled
 */
export async function requireRepeatedStepUp(context: Context, code: string, isSame: boolean): Promise<void> {
  const useCode = await askedCode(context, code, isSame);
  await useCode?.();
}

/**
 * Returns the use of the code; undefined: the request needs none.
 * @param isUsed whether the code is right and used up already
 * @throws ApiError step_up_required
 */
async function askedCode(
  context: Context,
  code: string | null | undefined,
  isUsed = false,
): Promise<(() => Promise<void>) | undefined> {
  const { db, viewer, logins, address } = context;
  if (!viewer?.isLogin) return undefined;
  const login = await FIND_LOGIN.first(db, [viewer.credentialId, RECENT_SECONDS]);
  if (!login?.totpEnabled || (login.isRecent && !code)) return undefined;
  if (!code) throw new ApiError('step_up_required');
  const { accountId, name } = login;
  return () =>
    logins.attempt({ name, address, proof: proofOf(viewer) }, async () => {
      if (isUsed) return;
      await db.transaction(async (tx) => {
        await lockAccount(tx, accountId);
        await useSecondFactor(context, tx, accountId, code);
      });
    });
}
