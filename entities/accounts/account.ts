/** Accounts: a person registers with an email and a password, an agent by an OAuth client of its own. */
import {
  boolean,
  defaulting,
  entity,
  int,
  key,
  now,
  nullable,
  oneOf,
  type RowOf,
  text,
  timestamp,
} from '../database/table.ts';

export const Account = entity(
  'account',
  {
    id: key(),
    kind: oneOf('PERSON', 'AGENT'),
    email: nullable(text()),
    /** argon2id in PHC form; null for agents. */
    passwordHash: nullable(text()),
    totpEnabled: defaulting(boolean(), 'false'),
    pgpFingerprint: nullable(text()),
    lowBalanceAlertDays: defaulting(int(), 7),
    /** When balance.low was last sent. */
    lowBalanceAlertedAt: nullable(timestamp()),
    createdAt: now(),
    /** The operator did it: the account may read and end things, and nothing else. */
    suspendedAt: nullable(timestamp()),
    /** What the customer is told of it. */
    suspendedFor: nullable(text()),
  },
  [{ name: 'account_email', columns: ['email'], unique: true }],
);
export type Account = RowOf<typeof Account>;
