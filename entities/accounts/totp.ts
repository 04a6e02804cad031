/** The second factor of an account: a TOTP seed (RFC 6238), recovery codes, and logins that wait for a code. */

import * as column from '../database/column.ts';
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
});
export type Totp = RowOf<typeof Totp>;

/** The context under which a seed is sealed. */
export const seedContext = (accountId: string): string => `totp.seed:${accountId}`;

/** An unused recovery code. Its digest has a key, because 40 bits are too few for a plain digest. */
export const RecoveryCode = entity('recovery_code', {
  accountId: column.key(),
  digest: { ...column.bytes(), primary: true },
});

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

/** The pending login with the digest $1, and the name by which the throttle counts its attempts. */
export const FIND_PENDING_LOGIN = statement(
  { id: column.key(), accountId: column.text(), name: column.text() },
  `select pending_login.id, account_id, coalesce(account.email, account.id) as name
    from pending_login join account on account.id = account_id where digest = $1`,
);
