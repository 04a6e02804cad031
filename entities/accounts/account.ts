/** Accounts, and their suspension: a suspended account may read, and end what it has. */

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
import type { Transaction } from '../database/transaction.ts';
import type { Actor } from '../history/audit.ts';
import { record } from '../history/record.ts';

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

/**
 * Suspends an account for a reason, or with null ends its suspension. One that is suspended already stays so, for the
 * reason of the first time. The lock on its row keeps out credentials that would not hear of it.
 */
export async function setSuspension(tx: Transaction, accountId: string, reason: string | null, actor: Actor) {
  const moved = await tx.query(
    `update account set suspended_for = $2, suspended_at = case when $2::text is not null then now() end
      where id = $1 and (suspended_at is null) = ($2::text is not null) returning id`,
    [accountId, reason],
  );
  if (!moved.length) return;
  const type = reason === null ? 'account.resumed' : 'account.suspended';
  const data = reason === null ? {} : { reason };
  await record(tx, accountId, accountId, { type, actor, data });
  tx.changed({ kind: 'credential', accountId, id: null });
}
