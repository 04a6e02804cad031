/** The second factor of an account: a TOTP seed (RFC 6238), recovery codes, and logins that wait for a code. */
import * as column from '../database/column.ts';
import { sealedColumn } from '../database/sealed.ts';
import { statement } from '../database/statement.ts';
import { defaulting, entity, nullable, type RowOf } from '../database/table.ts';

export const Totp = entity('totp', {
  accountId: column.key(),
  /** Base32 text (RFC 4648), sealed. */
  seed: column.bytes(),
  /** Null during setup. */
  enabledAt: nullable(column.timestamp()),
  setupExpiresAt: column.timestamp(),
  /** The time step of the last accepted code. Only codes of later steps are accepted. */
  lastStep: defaulting(column.int(), 0),
  /** Sealed: the unused recovery codes as `RecoveryCodes`. Null during setup. */
  recoveryCodes: nullable(column.bytes()),
});
export type Totp = RowOf<typeof Totp>;

export const TOTP_SEED = sealedColumn(Totp, 'seed', 'account_id');
export const RECOVERY_CODES = sealedColumn(Totp, 'recoveryCodes', 'account_id');

/** The codes as HMACs. Their key is sealed with them, so they stay valid under any key of the service. */
export interface RecoveryCodes {
  /** Base64, as each digest is. */
  key: string;
  digests: string[];
}

/** A login with the right password. The row exists while the login waits for a code. */
export const PendingLogin = entity('pending_login', {
  id: column.key(),
  accountId: column.text(),
  digest: column.bytes(),
  wrongCodes: defaulting(column.int(), 0),
  expiresAt: column.timestamp(),
  createdAt: column.now(),
});
export type PendingLogin = RowOf<typeof PendingLogin>;

/** Deletes the logins that waited too long for a code. */
export const DELETE_ENDED_LOGINS = statement({ accountId: column.text(), wrongCodes: column.int() })`
  delete from pending_login where expires_at <= now() returning account_id, wrong_codes`;
/** Deletes the seeds that no code confirmed in time. */
export const DELETE_UNCONFIRMED_SEEDS = statement({})`
  delete from totp where enabled_at is null and setup_expires_at <= now()`;

/** Writes a login $1 of the account $2 with the digest $3, which waits $4 seconds for a code. */
export const ADD_PENDING_LOGIN = statement({})`
  insert into pending_login (id, account_id, digest, expires_at) values ($1, $2, $3, now() + make_interval(secs => $4))`;
/** The wrong codes of the login $1, while it waits. */
export const COUNT_WRONG_CODES = statement({ wrongCodes: column.int() })`
  select wrong_codes from pending_login where id = $1 and expires_at > now()`;
/** Keeps the new seed $2 of the account $1, which a code has to confirm within $3 seconds. */
export const BEGIN_SETUP = statement({})`
  insert into totp (account_id, seed, setup_expires_at) values ($1, $2, now() + make_interval(secs => $3))
    on conflict (account_id) do update set seed = excluded.seed, setup_expires_at = excluded.setup_expires_at,
      enabled_at = null, last_step = 0, recovery_codes = null`;
/** The account $1, while a code can confirm its seed. */
export const FIND_SETUP = statement({ accountId: column.key() })`
  select account_id from totp where account_id = $1 and setup_expires_at > now()`;
/** Notes that a code has confirmed the seed of the account $1. */
export const CONFIRM_SEED = statement({})`update totp set enabled_at = now() where account_id = $1`;

/** The pending login with the digest $1, and the name by which the throttle counts its attempts. */
export const FIND_PENDING_LOGIN = statement({ id: column.key(), accountId: column.text(), name: column.text() })`
  select pending_login.id, account_id, coalesce(account.email, account.id) as name
    from pending_login join account on account.id = account_id where digest = $1`;
