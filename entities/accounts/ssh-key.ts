/** SSH public keys of an account. The service never sees the private keys. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { entity, nullable, type RowOf } from '../database/table.ts';

export const SshKey = entity('ssh_key', {
  id: column.key(),
  accountId: column.text(),
  name: column.text(),
  /** Canonical `type base64`, without comment. */
  publicKey: column.text(),
  type: column.text(),
  bits: column.int(),
  /** `SHA256:` and base64 without padding, as ssh-keygen prints it. */
  fingerprint: column.text(),
  createdAt: column.now(),
  /** The expiry of the credential of `limitedBy`. */
  expiresAt: nullable(column.timestamp()),
  /** The credential with limits, or the OAuth client, that added it last. Its end deletes the key. */
  limitedBy: nullable(column.text()),
});
export type SshKey = RowOf<typeof SshKey>;

/** A condition: the key has not expired. The worker deletes an expired one a moment later. */
export const IS_USABLE_SSH_KEY = '(expires_at is null or expires_at > now())';

/** The ids and names of the keys of the account $1. */
export const NAME_SSH_KEYS = statement({ code: column.text(), name: column.text() })`
  select id as code, name from ssh_key where account_id = $1 and ${IS_USABLE_SSH_KEY} order by id`;
/** The seconds until the key $1 expires; null: it never does. */
export const FIND_SSH_KEY_SECONDS = statement({ seconds: nullable(column.real()) })`
  select extract(epoch from expires_at - now())::float8 as seconds from ssh_key where id = $1`;
/** Deletes the key $1, if it has expired. */
export const DELETE_EXPIRED_SSH_KEY = statement({ id: column.key() })`
  delete from ssh_key where id = $1 and not ${IS_USABLE_SSH_KEY} returning id`;
/** Deletes the keys of the account $1 that end with the credentials $2. */
export const DELETE_CREATED_SSH_KEYS = statement({ id: column.key() })`
  delete from ssh_key where account_id = $1 and limited_by = any($2::text[]) returning id`;
