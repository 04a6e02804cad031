/** Step-up: a request that creates credentials proves the second factor again, unless its login is recent. */
import { FIND_LOGIN } from '../../../entities/accounts/credential.ts';
import { ApiError } from '../../../entities/errors.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import { type Context, isLogin } from '../../context.ts';
import { proofOf } from './scope.ts';
import { useSecondFactor } from './second-factor.ts';

/** A login with its second factor is recent for so long. */
const RECENT_SECONDS = 15 * 60;

/**
 * Demands a code from access tokens of logins whose account has a second factor. API keys and OAuth tokens need none: they
 * act without a person. Checks a given code in any case, because a kept answer is given again for the same code.
 * @throws ApiError step_up_required, invalid_totp or login_throttled
 */
export async function requireStepUp(context: Context, code: string | null | undefined): Promise<void> {
  const { db, viewer, logins, address } = context;
  if (!viewer || !isLogin(viewer)) return;
  const login = await FIND_LOGIN.first(db, [viewer.credentialId, RECENT_SECONDS]);
  if (!login?.totpEnabled || (login.isRecent && !code)) return;
  if (!code) throw new ApiError('step_up_required');
  const { accountId, name } = login;
  await logins.attempt({ name, address, proof: proofOf(viewer) }, () =>
    db.transaction(async (tx) => {
      await lockAccount(tx, accountId);
      await useSecondFactor(context, tx, accountId, code);
    }),
  );
}
