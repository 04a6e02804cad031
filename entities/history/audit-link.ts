/** The audit entries as their hash chains see them. Each account has a chain. */
import { statement } from '../database/statement.ts';
import { columnsOf } from '../database/table.ts';
import type { Transaction } from '../database/transaction.ts';
import { AuditEntry } from './audit.ts';
import { fitOf } from './chain-fit.ts';
import { type Chained, jsonTimeSql, LEDGER_CHAIN, type Linked, link, lockChains } from './hash-chain.ts';

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

/** The links after the number $2 of the chain $1, and of the chains after it, with their entries. They came at the time $3 or later. */
export const FIT_ENTRIES = fitOf({
  links: `(account_id, number) > ($1, $2) and account_id <> '${LEDGER_CHAIN}' and linked_at >= $3`,
  record: 'audit_entry',
  chain: 'record.account_id',
  // Retention leaves the last deleted link as the anchor. The signed heads tell whether the deleted entries were old.
  isAnchor: `not exists (
    select from audit_link as earlier where earlier.account_id = linked.account_id and earlier.number < linked.number)`,
  json: `left(array_to_json(array[record.id, record.account_id, action, actor_type, actor_id, actor_name, resource_type, resource_id,
    request_id, method, path])::text, -1) || ',' || coalesce(status::text, 'null') || ',' || count
    || ',"' || ${jsonTimeSql('created_at')} || '"]'`,
});

/** The oldest entries without a link, at most $1, and none of the accounts $2. */
const FIND_UNLINKED = statement(AuditEntry.columns)`
  select ${columnsOf(AuditEntry)} from audit_unlinked join audit_entry on id = entry_id
    where account_id <> all($2::text[]) order by id limit $1`;

/** Adds the oldest entries without a link to their chains, at most so many. It leaves the entries of some accounts alone. */
export async function linkEntries(tx: Transaction, most: number, without: Iterable<string> = []): Promise<Linked> {
  await lockChains(tx);
  return link(tx, (await FIND_UNLINKED.all(tx, [most, [...without]])).map(chainedEntry));
}
