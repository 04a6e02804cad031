/** The second factor of an account: a TOTP seed (RFC 6238), recovery codes, and logins that wait for it. */
import { bytes, defaulting, entity, int, key, now, nullable, type RowOf, text, timestamp } from '../database/table.ts';

export const Totp = entity('totp', {
  accountId: key(),
  /** Sealed; base32 (RFC 4648) inside. */
  seed: bytes(),
  /** Null during setup. */
  enabledAt: nullable(timestamp()),
  setupExpiresAt: timestamp(),
  /** The newest time step of which a code was accepted; only later ones are. */
  lastStep: defaulting(int(), 0),
});
export type Totp = RowOf<typeof Totp>;

/** What a seed is sealed for. */
export const seedContext = (accountId: string): string => `totp.seed:${accountId}`;

/** A recovery code that has not been used. Its digest is keyed: 40 bits would not withstand a plain one. */
export const RecoveryCode = entity('recovery_code', {
  accountId: key(),
  digest: { ...bytes(), primary: true },
});

/** A login whose password was right. The row exists as long as a code is awaited. */
export const PendingLogin = entity(
  'pending_login',
  {
    id: key(),
    accountId: text(),
    digest: bytes(),
    wrongCodes: defaulting(int(), 0),
    expiresAt: timestamp(),
    createdAt: now(),
  },
  [
    { name: 'pending_login_digest', columns: ['digest'], unique: true },
    { name: 'pending_login_account', columns: ['accountId', 'expiresAt'] },
  ],
);
export type PendingLogin = RowOf<typeof PendingLogin>;
