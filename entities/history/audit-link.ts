/**
 * The hash chains of the audit log, one for each account. The hash of a link covers its entry and the hash of the link before.
 * A worker links entries shortly after their commit, so that no request waits for a chain.
 */
import { createHash } from 'node:crypto';
import * as column from '../database/column.ts';
import { LOCK_NAME } from '../database/lock-name.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, defaulting, entity, type RowOf } from '../database/table.ts';
import { type Queryable, sqlStateOf, type Transaction } from '../database/transaction.ts';
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

/** The oldest entries without a link, at most $1, and none of the accounts $2. */
const FIND_UNLINKED = statement(AuditEntry.columns)`
  select ${columnsOf(AuditEntry)} from audit_unlinked join audit_entry on id = entry_id
    where account_id <> all($2::text[]) order by id limit $1`;
/** For each account, the entries that wait for their link for longer than an hour. At most $1 accounts. */
const FIND_WAITING = statement({ accountId: column.text(), entryId: column.text(), count: column.int() })`
  select account_id, min(id) as entry_id, count(*)::int from audit_unlinked join audit_entry on id = audit_unlinked.entry_id
    where created_at < now() - interval '1 hour' group by account_id order by account_id limit $1`;
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

export interface Linked {
  /** The number of new links. */
  count: number;
  /** The accounts whose chains take no link, with the reason. */
  broken: Map<string, string>;
}

/** Adds the oldest entries without a link to their chains, at most so many. It leaves the entries of some accounts alone. */
export async function linkEntries(tx: Transaction, most: number, without: Iterable<string> = []): Promise<Linked> {
  await lockChains(tx);
  const entries = await FIND_UNLINKED.all(tx, [most, [...without]]);
  const broken = new Map<string, string>();
  if (!entries.length || (await refusalOf(tx, entries)) === undefined) return { count: entries.length, broken };
  let count = 0;
  for (const [accountId, own] of Map.groupBy(entries, (entry) => entry.accountId)) {
    const refusal = await refusalOf(tx, own);
    if (refusal === undefined) count += own.length;
    else broken.set(accountId, refusal);
  }
  return { count, broken };
}

/** PostgreSQL's codes for values out of range and for broken constraints. */
const REFUSED = /^2[23]/;

/** Links entries. If the tables refuse a link, it adds none and returns the reason. */
const refusalOf = (tx: Transaction, entries: readonly AuditEntry[]): Promise<string | undefined> =>
  tx
    .attempt((inner) => addLinks(inner, entries))
    .catch((error) => {
      if (!REFUSED.test(sqlStateOf(error) ?? '')) throw error;
      return (error as Error).message;
    });

async function addLinks(tx: Transaction, entries: readonly AuditEntry[]): Promise<undefined> {
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
}

/** Entries of an account that wait too long for their link. */
export interface Waiting {
  accountId: string;
  /** The oldest. */
  entryId: string;
  detail: string;
}

/** Finds the entries that wait for their link for longer than an hour, of at most so many accounts. */
export const findWaiting = async (db: Queryable, most: number): Promise<Waiting[]> =>
  (await FIND_WAITING.all(db, [most])).map(({ accountId, entryId, count }) => ({
    ...{ accountId, entryId },
    detail: `Entries that wait for their chain for longer than an hour: ${count}.`,
  }));
