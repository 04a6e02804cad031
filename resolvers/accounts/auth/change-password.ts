/** Checks and changes the password of an account. */
import { Account } from '../../../entities/accounts/account.ts';
import { revokeCredentials } from '../../../entities/accounts/revoke.ts';
import { Totp } from '../../../entities/accounts/totp.ts';
import { remove, update } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import { record } from '../../../entities/history/record.ts';
import { transition } from '../../../entities/history/transition.ts';
import {
  LOCK_WEBHOOKS,
  SECRET_REVOKED,
  WEBHOOK_LIFECYCLE,
  WEBHOOK_SECRET,
  Webhook,
} from '../../../entities/webhooks/webhook.ts';
import { newWebhookSecret } from '../../../provisioning/index.ts';
import { actorOf, type Context } from '../../context.ts';
import { findAccount, lockedOwnAccount } from '../account.ts';
import { hashPassword, refuseWeakPassword, verifyPassword } from './password.ts';
import { proofOf } from './scope.ts';
import { useSecondFactor } from './second-factor.ts';
import { recordLoginChange } from './sessions.ts';

/** Returns the caller's account, if the password is right. @throws ApiError wrong_password or login_throttled */
export async function requirePassword(context: Context, password: string): Promise<Account> {
  const account = await findAccount(context);
  await context.logins.attempt(
    { name: account.email ?? account.id, address: context.address, proof: proofOf(context.viewer) },
    async () => {
      if (!(await verifyPassword(account.passwordHash, password, context.address)))
        throw new ApiError('wrong_password');
    },
  );
  return account;
}

export interface PasswordChange {
  currentPassword: string;
  newPassword: string;
  totpCode?: string | null | undefined;
  /** EVERYTHING: also API keys, OAuth clients, and the secrets of webhooks, which are disabled. */
  revoke: 'SESSIONS' | 'EVERYTHING';
}

/** The numbers of ended things. The numbers that only EVERYTHING can have are absent otherwise. */
export interface PasswordChanged {
  sessionsRevoked: number;
  apiKeysRevoked?: number;
  oauthClientsDeleted?: number;
  webhookSecretsReplaced?: number;
}

/**
 * Changes the password, also of a suspended account, so that its owner can throw a thief out. All other sessions end, and with EVERYTHING also the credential of the caller, unless it is a login.
 * @throws ApiError wrong_password, weak_password, validation_failed for the same password, invalid_totp or login_throttled
 */
export async function changePassword(context: Context, change: PasswordChange): Promise<PasswordChanged> {
  const { currentPassword, newPassword, totpCode, revoke } = change;
  const { id: accountId, email, passwordHash: checked } = await requirePassword(context, currentPassword);
  refuseWeakPassword(newPassword, email ?? '', 'new_password');
  if (newPassword === currentPassword)
    throw new ApiError('validation_failed', undefined, {
      errors: [
        { field: 'new_password', code: 'unchanged', message: 'Choose a password that differs from the present one.' },
      ],
    });
  const passwordHash = await hashPassword(newPassword, context.address);
  return context.logins.attempt(
    { name: email ?? accountId, address: context.address, proof: proofOf(context.viewer) },
    () =>
      context.db.transaction(async (tx) => {
        const account = await lockedOwnAccount(tx, context, 'while suspended');
        // Another request may have changed the password since the check.
        if (account.passwordHash !== checked) throw new ApiError('wrong_password');
        if (account.totpEnabled) await useSecondFactor(context, tx, accountId, totpCode);
        // A setup that the old password began ends with that password.
        else await remove(tx, Totp, { accountId });
        await update(tx, Account, { id: accountId }, { passwordHash });
        const sessionsRevoked = await recordLoginChange(context, tx, accountId, 'password_changed');
        if (revoke === 'SESSIONS') return { sessionsRevoked };
        const { apiKeys, clients, sessions } = await revokeCredentials(tx, accountId, null, actorOf(context));
        return {
          sessionsRevoked: sessionsRevoked + sessions.length,
          apiKeysRevoked: apiKeys.length,
          oauthClientsDeleted: clients.length,
          webhookSecretsReplaced: await replaceSecrets(context, tx, accountId),
        };
      }),
  );
}

/**
 * Gives each webhook a new secret at once, so that a thief of the old one cannot sign messages. Disables the webhooks, because
 * their receivers may be the thief's. Each works again once the owner has rotated its secret.
 * @returns how many
 */
async function replaceSecrets(context: Context, tx: Transaction, accountId: string): Promise<number> {
  const webhooks = await LOCK_WEBHOOKS.all(tx, [accountId]);
  for (const { id, disabledReason: before } of webhooks) {
    const secret = WEBHOOK_SECRET.seal(context.vault, newWebhookSecret(), id);
    // An expired webhook stays so.
    const disabledReason = before === 'expired' ? before : SECRET_REVOKED;
    await update(tx, Webhook, { id }, { secret, previousSecret: null, previousSecretUntil: null, disabledReason });
    if (await transition(tx, WEBHOOK_LIFECYCLE, id, 'DISABLED')) {
      const data = { disabled_reason: disabledReason };
      await record(tx, accountId, id, { type: 'webhook.disabled', actor: actorOf(context), data });
    }
  }
  return webhooks.length;
}
