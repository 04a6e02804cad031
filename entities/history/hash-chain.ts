/**
 * Hash chains: one of the audit log of each account, and one of the ledger. The hash of a link covers its record and the
 * hash of the link before. A worker links records shortly after their commit, so that no request waits for a chain.
 */
import { createHash } from 'node:crypto';
import * as column from '../database/column.ts';
import { LOCK_NAME } from '../database/lock-name.ts';
import { statement } from '../database/statement.ts';
import { defaulting, entity, type RowOf } from '../database/table.ts';
import { type Queryable, sqlStateOf, type Transaction } from '../database/transaction.ts';

/** The chain of the ledger. No account has this id. */
export const LEDGER_CHAIN = 'ledger';

export const AuditLink = entity('audit_link', {
  /** The account, or `LEDGER_CHAIN`. */
  accountId: column.key(),
  /** The place in the chain, from 1 on. */
  number: { ...column.bigint(), primary: true } as column.Column<bigint>,
  /** The audit entry, or the transfer. */
  entryId: column.text(),
  hash: column.bytes(),
  linkedAt: defaulting(column.timestamp(), 'clock_timestamp()'),
});
export type AuditLink = RowOf<typeof AuditLink>;

/** The records without a link. Triggers of their tables write it. */
entity('audit_unlinked', { entryId: column.key() });

/** A record, as its chain sees it. */
export interface Chained {
  /** The account, or `LEDGER_CHAIN`. */
  accountId: string;
  id: string;
  createdAt: Date;
  /** The members that the hash covers, in this order. Their JSON is the same in every version. */
  values: unknown[];
}

/** The hash before the first link of a chain. */
export const NO_HASH = Buffer.alloc(32);

/** JSON would show an infinite time, and one after the last year of JavaScript, as none. */
const inJson = (value: unknown): unknown =>
  typeof value === 'number' || value instanceof Date ? (Number.isFinite(+value) ? value : String(value)) : value;

/** Returns the hash of a link. It covers the hash before it, and the values of the record as JSON. */
export const linkHash = (previous: Buffer, { values }: Chained): Buffer =>
  createHash('sha256')
    .update(previous)
    .update(JSON.stringify(values.map(inJson)))
    .digest();

/** SQL of a time as `JSON.stringify` writes it. A time that is infinite, or of a year without four digits, never looks like another. */
export const jsonTimeSql = (time: string): string =>
  `case when ${time} >= '0001-01-02' and ${time} < '9999-12-31'
    then to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') else ${time}::text end`;

const CREATED = `(select id, account_id, created_at from audit_entry
    union all select id, '${LEDGER_CHAIN}', created_at from transfer) as record`;
/** For each chain, the records that wait for their link for longer than an hour. At most $1 chains. */
const FIND_WAITING = statement({ accountId: column.text(), entryId: column.text(), count: column.int() })`
  select account_id, min(id) as entry_id, count(*)::int from audit_unlinked join ${CREATED} on id = entry_id
    where created_at < now() - interval '1 hour' group by account_id order by account_id limit $1`;
/** The heads of the chains $1. */
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

/** Makes transactions that write chains wait for each other. */
export const lockChains = (tx: Transaction): Promise<unknown> => LOCK_NAME.all(tx, ['audit chains']);

export interface Linked {
  /** The number of new links. */
  count: number;
  /** The chains that take no link, with the reason. */
  broken: Map<string, string>;
}

/** Adds records to their chains in this order. The transaction has locked the chains. */
export async function link(tx: Transaction, records: readonly Chained[]): Promise<Linked> {
  const broken = new Map<string, string>();
  if (!records.length || (await refusalOf(tx, records)) === undefined) return { count: records.length, broken };
  let count = 0;
  for (const [accountId, own] of Map.groupBy(records, (record) => record.accountId)) {
    const refusal = await refusalOf(tx, own);
    if (refusal === undefined) count += own.length;
    else broken.set(accountId, refusal);
  }
  return { count, broken };
}

/** PostgreSQL's codes for values out of range and for broken constraints. */
const REFUSED = /^2[23]/;

/** Links records. If the tables refuse a link, it adds none and returns the reason. */
const refusalOf = (tx: Transaction, records: readonly Chained[]): Promise<string | undefined> =>
  tx
    .attempt((inner) => addLinks(inner, records))
    .catch((error) => {
      if (!REFUSED.test(sqlStateOf(error) ?? '')) throw error;
      return (error as Error).message;
    });

async function addLinks(tx: Transaction, records: readonly Chained[]): Promise<undefined> {
  const chains = [...new Set(records.map(({ accountId }) => accountId))];
  const heads = new Map((await FIND_HEADS.all(tx, [chains])).map((head) => [head.accountId, head]));
  const links = records.map((record) => {
    const { accountId } = record;
    const head = heads.get(accountId) ?? { accountId, number: 0n, hash: NO_HASH };
    const added = { accountId, number: head.number + 1n, hash: linkHash(head.hash, record) };
    heads.set(accountId, added);
    return { ...added, entryId: record.id };
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

/** Records of a chain that wait too long for their link. */
export interface Waiting {
  /** The account, or `LEDGER_CHAIN`. */
  accountId: string;
  /** The oldest. */
  entryId: string;
  detail: string;
}

/** Finds the records that wait for their link for longer than an hour, of at most so many chains. */
export const findWaiting = async (db: Queryable, most: number): Promise<Waiting[]> =>
  (await FIND_WAITING.all(db, [most])).map(({ accountId, entryId, count }) => ({
    ...{ accountId, entryId },
    detail: `Entries that wait for their chain for longer than an hour: ${count}.`,
  }));
