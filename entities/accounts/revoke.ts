/** Ends API keys and OAuth clients of an account. The credentials, webhooks and SSH keys that each created end with it. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import type { Transaction } from '../database/transaction.ts';
import { type Actor, OPERATOR_ACCOUNT } from '../history/audit.ts';
import { type Happening, recordAll } from '../history/record.ts';
import { expression, moveStatement } from '../history/transition.ts';
import { DISABLE_CREATED, NOTE_CREATOR_REVOKED } from '../webhooks/delivery.ts';
import { SECRET_REVOKED } from '../webhooks/webhook.ts';
import { API_KEY_LIFECYCLE, type ApiKey, IS_OPEN, isWayInSql } from './credential.ts';
import { DELETE_CREATED_SSH_KEYS } from './ssh-key.ts';

/** $1 the account, $2 the ids, with all that they created; null: all of the account. */
const CHOSEN = `account_id = $1 and ($2::text[] is null or id in (
    with recursive chosen (id) as (
      select unnest($2::text[])
      union select made.id from chosen join (
        select id, limited_by from api_key where account_id = $1 and status = 'ACTIVE'
        union all select id, limited_by from oauth_client where account_id = $1
      ) as made on made.limited_by = chosen.id)
    select id from chosen))`;
const REVOKE_API_KEYS = moveStatement(
  API_KEY_LIFECYCLE,
  'REVOKED',
  `${CHOSEN} and (expires_at is null or expires_at > now())`,
  { revokedAt: expression('now()') },
);
/** Deletes all but the clients $3, and remembers their owner. */
const DELETE_CLIENTS = statement({ id: column.key() })`
  with deleted as (delete from oauth_client where ${CHOSEN} and id <> all($3::text[]) returning id, account_id)
  insert into ended_client (id, account_id) select id, account_id from deleted returning id`;
/** Ends the sessions of the account $1 from the OAuth clients $2. */
const END_CLIENT_SESSIONS = statement({ id: column.key() })`
  update session set revoked_at = now() where account_id = $1 and substr(source, 7) = any($2::text[]) and source like 'oauth:%'
    and ${IS_OPEN} returning id`;

/** The accounts of customers with anything that `revokeAccount` ends. */
export const LIST_HOLDERS = statement({ accountId: column.text() })`
  select account_id from (
    select account_id from session where ${IS_OPEN}
    union select account_id from api_key where status = 'ACTIVE'
    union select account_id from oauth_client where not ${isWayInSql('oauth_client')}
    union select account_id from pending_login
    union select account_id from webhook where disabled_reason is null or disabled_reason not in ('expired', '${SECRET_REVOKED}')
  ) as holder where account_id <> '${OPERATOR_ACCOUNT}' order by account_id`;

export interface RevokedCredentials {
  apiKeys: ApiKey[];
  /** The ids of the deleted OAuth clients. */
  clients: string[];
  /** The ids of the ended sessions of these clients. */
  sessions: string[];
}

/**
 * Revokes API keys, deletes OAuth clients, and ends the sessions of these clients, at once. The credentials that they
 * created end with them, their webhooks stop, and their SSH keys leave. The caller holds the lock of the account.
 * @param ids of API keys and OAuth clients, or null for all of the account
 * @param kept OAuth clients among them that stay with their sessions. Their creations end
 */
export async function revokeCredentials(
  tx: Transaction,
  accountId: string,
  ids: readonly string[] | null,
  actor: Actor,
  kept: readonly string[] = [],
): Promise<RevokedCredentials> {
  const apiKeys = await REVOKE_API_KEYS.all(tx, [accountId, ids]);
  const clients = (await DELETE_CLIENTS.all(tx, [accountId, ids, kept])).map(({ id }) => id);
  const sessions = (await END_CLIENT_SESSIONS.all(tx, [accountId, clients])).map(({ id }) => id);
  const creators = [...apiKeys.map(({ id }) => id), ...clients, ...kept];
  await disableCreated(tx, accountId, creators, actor);
  const sshKeys = await DELETE_CREATED_SSH_KEYS.all(tx, [accountId, creators]);
  const told = (subject: string, happening: Happening) => ({ accountId, subject, ...happening });
  await recordAll(tx, [
    ...apiKeys.map(({ id }) => told(id, { type: 'api_key.revoked', actor })),
    ...clients.map((id) => told(id, { type: 'oauth_client.removed', actor })),
    ...sessions.map((id) => told(id, { type: 'session.revoked', actor, data: { reason: 'client_deleted' } })),
    ...sshKeys.map(({ id }) => told(id, { type: 'ssh_key.deleted', actor })),
  ]);
  const ended = [...apiKeys.map(({ id }) => id), ...sessions];
  tx.changedAll(ended.map((id) => ({ kind: 'credential', accountId, id }) as const));
  return { apiKeys, clients, sessions };
}

/** Disables the webhooks that credentials or operators created. The caller holds the lock of the account. */
export async function disableCreated(
  tx: Transaction,
  accountId: string,
  creators: readonly string[],
  actor: Actor,
): Promise<void> {
  const webhooks = await DISABLE_CREATED.all(tx, [accountId, creators]);
  await NOTE_CREATOR_REVOKED.all(tx, [accountId, creators]);
  await recordAll(
    tx,
    webhooks.map(({ id, disabledReason }) => ({
      ...{ accountId, subject: id, type: 'webhook.disabled' as const, actor },
      data: { disabled_reason: disabledReason },
    })),
  );
}
