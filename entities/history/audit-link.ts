/**
 * The hash chains of the audit log, one for each account. The hash of a link covers its entry and the hash of the link before.
 * A worker links entries shortly after their commit, so that no request waits for a chain.
 */
import { createHash } from 'node:crypto';
import * as column from '../database/column.ts';
import { LOCK_NAME } from '../database/lock-name.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, defaulting, entity, type RowOf } from '../database/table.ts';
import type { Transaction } from '../database/transaction.ts';
import { AuditEntry } from './audit.ts';

export const AuditLink = entity('audit_link', {
  accountId: column.key(),
  /** The place in the chain, from 1 on. */
  number: { ...column.bigint(), primary: true } as column.Column<bigint>,
  entryId: column.text(),
  hash: column.bytes(),
  linkedAt: defaulting(column.timestamp(), 'clock_timestamp()'),
});
export type AuditLink = RowOf<typeof AuditLink>;

/** The entries without a link. A trigger of the table of entries writes it. */
entity('audit_unlinked', { entryId: column.key() });

/** The hash before the first link of a chain. */
export const NO_HASH = Buffer.alloc(32);

/** Returns the hash of a link. It covers the hash before it, and the entry as JSON with its members in this order. */
export function linkHash(previous: Buffer, entry: AuditEntry): Buffer {
  const { id, accountId, action, actorType, actorId, actorName, resourceType, resourceId } = entry;
  const { requestId, method, path, status, count, createdAt } = entry;
  const canonical = JSON.stringify([
    ...[id, accountId, action, actorType, actorId, actorName, resourceType, resourceId],
    ...[requestId, method, path, status, count, createdAt.toISOString()],
  ]);
  return createHash('sha256').update(previous).update(canonical).digest();
}

/** The oldest entries without a link, at most $1. */
const FIND_UNLINKED = statement(AuditEntry.columns)`
  select ${columnsOf(AuditEntry)} from audit_unlinked join audit_entry on id = entry_id order by id limit $1`;
/** The heads of the chains of the accounts $1. */
const FIND_HEADS = statement({ accountId: column.text(), number: column.bigint(), hash: column.bytes() })`
  select head.* from unnest($1::text[]) as given(account_id) cross join lateral (
    select account_id, number, hash from audit_link where audit_link.account_id = given.account_id
      order by number desc limit 1) as head`;
const INSERT_LINKS = statement({})`
  insert into audit_link (account_id, number, entry_id, hash, linked_at)
    select given.*, clock_timestamp() from unnest($1::text[], $2::bigint[], $3::text[], $4::bytea[]) as given`;
const DELETE_UNLINKED = statement({})`
  with linked as (select entry_id from audit_unlinked where entry_id = any($1) order by entry_id for update)
    delete from audit_unlinked using linked where audit_unlinked.entry_id = linked.entry_id`;

/** Makes transactions that write chains or sign them wait for each other. */
export const lockChains = (tx: Transaction): Promise<unknown> => LOCK_NAME.all(tx, ['audit chains']);

/** Adds the oldest entries without a link to their chains, at most so many. @returns how many */
export async function linkEntries(tx: Transaction, most: number): Promise<number> {
  await lockChains(tx);
  const entries = await FIND_UNLINKED.all(tx, [most]);
  if (!entries.length) return 0;
  const accounts = [...new Set(entries.map(({ accountId }) => accountId))];
  const heads = new Map((await FIND_HEADS.all(tx, [accounts])).map((head) => [head.accountId, head]));
  const links = entries.map((entry) => {
    const { accountId } = entry;
    const head = heads.get(accountId) ?? { accountId, number: 0n, hash: NO_HASH };
    const link = { accountId, number: head.number + 1n, hash: linkHash(head.hash, entry) };
    heads.set(accountId, link);
    return { ...link, entryId: entry.id };
  });
  const ids = links.map(({ entryId }) => entryId);
  await INSERT_LINKS.all(tx, [
    links.map(({ accountId }) => accountId),
    links.map(({ number }) => number),
    ids,
    links.map(({ hash }) => hash),
  ]);
  await DELETE_UNLINKED.all(tx, [ids]);
  return links.length;
}
