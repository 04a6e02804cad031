/** The audit entries as their hash chains see them. Each account has a chain. */
import { statement } from '../database/statement.ts';
import { columnsOf } from '../database/table.ts';
import type { Transaction } from '../database/transaction.ts';
import { AuditEntry } from './audit.ts';
import { type Chained, type Linked, link, lockChains } from './hash-chain.ts';

/** Returns an entry as its chain sees it. */
export function chainedEntry(entry: AuditEntry): Chained {
  const { id, accountId, action, actorType, actorId, actorName, resourceType, resourceId } = entry;
  const { requestId, method, path, status, count, createdAt } = entry;
  return {
    ...{ accountId, id, createdAt },
    values: [
      ...[id, accountId, action, actorType, actorId, actorName, resourceType, resourceId],
      ...[requestId, method, path, status, count, createdAt],
    ],
  };
}

/** The oldest entries without a link, at most $1, and none of the accounts $2. */
const FIND_UNLINKED = statement(AuditEntry.columns)`
  select ${columnsOf(AuditEntry)} from audit_unlinked join audit_entry on id = entry_id
    where account_id <> all($2::text[]) order by id limit $1`;

/** Adds the oldest entries without a link to their chains, at most so many. It leaves the entries of some accounts alone. */
export async function linkEntries(tx: Transaction, most: number, without: Iterable<string> = []): Promise<Linked> {
  await lockChains(tx);
  return link(tx, (await FIND_UNLINKED.all(tx, [most, [...without]])).map(chainedEntry));
}
