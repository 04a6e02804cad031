/** Ends all credentials of an account: by its owner with a new password, or by the operator. */
import { FIND_OPEN_SESSIONS } from '../../../entities/accounts/credential.ts';
import { FIND_WAYS_IN } from '../../../entities/accounts/oauth-client.ts';
import { revokeCredentials } from '../../../entities/accounts/revoke.ts';
import { PendingLogin } from '../../../entities/accounts/totp.ts';
import { remove, update } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { record } from '../../../entities/history/record.ts';
import { transition } from '../../../entities/history/transition.ts';
import {
  LOCK_WEBHOOKS,
  SECRET_REVOKED,
  WEBHOOK_LIFECYCLE,
  WEBHOOK_SECRET,
  Webhook,
} from '../../../entities/webhooks/webhook.ts';
import { newWebhookSecret, writeMessages } from '../../../provisioning/index.ts';
import { actorOf, type Context } from '../../context.ts';
import { lockedAccount } from '../account.ts';
import { endSessions } from './sessions.ts';

/** The numbers of ended things. */
export interface Revoked {
  sessionsRevoked: number;
  apiKeysRevoked: number;
  oauthClientsDeleted: number;
  webhookSecretsReplaced: number;
}

/**
 * Ends all credentials of an account for the operator, also those of its owner, who logs in again. A message has the reason.
 * An account without a password keeps the OAuth client that is its way in, with its secret. The tokens of the client end.
 * @throws ApiError not_found
 */
export async function revokeAccount(context: Context, id: string, reason: string): Promise<Revoked> {
  return context.db.transaction(async (tx) => {
    await lockedAccount(tx, id);
    const revoked = await revokeCredentialsOf(tx, context, id, reason);
    const body = `We ended the sessions and credentials of your account, and disabled its webhooks. Its SSH keys stay, so delete those that are not yours. Our reason: ${reason}`;
    const letter = { title: 'We ended your credentials', body, relatedType: null, relatedId: null };
    await writeMessages(tx, 'OPERATOR', [id], letter, actorOf(context));
    return revoked;
  });
}

/**
 * Ends all credentials of an account within a transaction, but the clients that are its only ways in. Their tokens end. The
 * caller holds the lock of the account.
 */
export async function revokeCredentialsOf(
  tx: Transaction,
  context: Context,
  id: string,
  reason: string,
): Promise<Revoked> {
  const kept = (await FIND_WAYS_IN.all(tx, [id])).map((client) => client.id);
  // No webhook hears of it, because the new secrets disable them all. The customer can have it repeated to an enabled one.
  await record(tx, id, id, { type: 'account.credentials_revoked', actor: actorOf(context), data: { reason } });
  await remove(tx, PendingLogin, { accountId: id });
  const open = await FIND_OPEN_SESSIONS.all(tx, [id]);
  const logins = open.filter(({ isLogin }) => isLogin).map((session) => session.id);
  const ended = await endSessions(tx, id, logins, 'revoked', actorOf(context));
  const revoked = await revokeEverything(context, tx, id, kept);
  return { ...revoked, sessionsRevoked: revoked.sessionsRevoked + ended };
}

/**
 * Ends API keys and OAuth clients with their tokens, and replaces the secrets of webhooks. The caller holds the lock of the account.
 * @param kept OAuth clients that stay with their tokens
 */
export async function revokeEverything(
  context: Context,
  tx: Transaction,
  accountId: string,
  kept: readonly string[] = [],
): Promise<Revoked> {
  const { apiKeys, clients, sessions } = await revokeCredentials(tx, accountId, null, actorOf(context), kept);
  return {
    sessionsRevoked: sessions.length,
    apiKeysRevoked: apiKeys.length,
    oauthClientsDeleted: clients.length,
    webhookSecretsReplaced: await replaceSecrets(context, tx, accountId),
  };
}

/**
 * Gives each webhook a new secret at once, so that a thief of the old one cannot sign messages. Disables the webhooks, because
 * their receivers may be the thief's. Each works again once the owner has rotated its secret. The caller holds the lock of the
 * account.
 * @returns how many
 */
export async function replaceSecrets(context: Context, tx: Transaction, accountId: string): Promise<number> {
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
