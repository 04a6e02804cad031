/** The suspension of an account: from then on it may read, and end what it has. */

import type { Transaction } from '../database/database.ts';
import type { Actor } from '../history/audit.ts';
import { record } from '../history/record.ts';

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
  await record(tx, accountId, accountId, { type, resource: 'account', actor, data });
  tx.changed({ kind: 'credential', accountId, id: null });
}
