/** Registration by email and password. The service sends no mail. */
import { Account } from '../../entities/accounts/account.ts';
import { insert } from '../../entities/database/table.ts';
import { constraintOf } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { newId } from '../../entities/ids.ts';
import { openBalance } from '../../entities/payments/ledger.ts';
import type { Context } from '../context.ts';
import { invalid } from '../errors.ts';
import { hashPassword, refuseWeakPassword } from './auth/password.ts';
import { type LoggedIn, openSession } from './auth/session.ts';
import { replaceRecoveryCodes } from './recovery/recover.ts';
import { admitRegistration, admitUnproven } from './registration.ts';

export interface Registration {
  email: string;
  password: string;
  proofOfWork?: string | null | undefined;
  /** Whether the account gets recovery codes. */
  recoveryCodes?: boolean | null | undefined;
}

/** A new account with its tokens. */
export interface Registered extends LoggedIn {
  /** Null: none were asked for. */
  recoveryCodes: string[] | null;
}

/** Creates an account and logs it in. @throws ApiError weak_password, proof_of_work_required, email_taken, or validation_failed for codes without recovery */
export async function register(context: Context, registration: Registration): Promise<Registered> {
  const { email, password, proofOfWork, recoveryCodes } = registration;
  if (recoveryCodes && !context.features.has('recovery'))
    throw invalid('recovery_codes', 'recovery_codes is not available: this service has no recovery. Leave it out.');
  await refuseWeakPassword(password, email);
  const proven = await admitRegistration(context, proofOfWork);
  const passwordHash = await hashPassword(password, context.address);
  const id = newId('acct');
  try {
    const registered = await context.db.transaction(async (tx) => {
      // The hash took its time, and others may have registered meanwhile.
      if (!proven) await admitUnproven(context, tx);
      await insert(tx, Account, { id, kind: 'PERSON', email, passwordHash });
      await openBalance(tx, id);
      const tokens = await openSession(context, tx, id, 'register');
      const codes = recoveryCodes ? await replaceRecoveryCodes(tx, id) : null;
      return { account: await tx.manager.findOneByOrFail(Account, { id }), tokens, recoveryCodes: codes };
    });
    void context.logins.remember({ name: email, address: context.address });
    return registered;
  } catch (error) {
    if (constraintOf(error) === 'account_email') throw new ApiError('email_taken');
    throw error;
  }
}
