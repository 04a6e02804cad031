/** The proof of hash chains: every record is in its chain as it was written. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf } from '../database/table.ts';
import type { Queryable } from '../database/transaction.ts';
import { AuditLink, type Chained, LEDGER_CHAIN, linkHash, NO_HASH } from './hash-chain.ts';

/** A place where a chain is not as it was written. */
export interface ChainFault {
  /** The account, or `LEDGER_CHAIN`. Null: a signature covers many chains. */
  accountId: string | null;
  /** The entry or transfer, or the next known one. Null: it is not known. */
  entryId: string | null;
  detail: string;
}
/** Takes a fault, and tells whether it takes more. */
export type Found = (fault: ChainFault) => 'more' | 'full';

/** Chains of one kind of records. */
export interface Chains {
  /** Whether it is the chain of the ledger. Otherwise it is those of the audit log. */
  isLedger: boolean;
  /** Whether retention deletes the beginning of a chain. It leaves the last deleted link as the anchor. */
  hasAnchors: boolean;
  /** Reads the records with these ids, in any order. */
  read(ids: string[]): Promise<Chained[]>;
  /** Looks for other faults of a link that is as it was written. */
  faultOf?(link: AuditLink, record: Chained): string | undefined;
}

const CHUNK = 2_000;
/** The links after the place ($1, $2), at most $3. $4: of the ledger. */
const LINKS_AFTER = statement(AuditLink.columns)`
  select ${columnsOf(AuditLink)} from audit_link
    where (account_id, number) > ($1, $2) and (account_id = '${LEDGER_CHAIN}') = $4 order by account_id, number limit $3`;
/** The hashes of the chain $1. */
const FIND_HASHES = statement({ hash: column.bytes() })`
  select hash from audit_link where account_id = $1`;

/** Proves chains. @returns the number of their records */
export async function proveLinks(db: Queryable, chains: Chains, found: Found): Promise<number> {
  let known = 0;
  let before: AuditLink | undefined;
  let hashes: { of: string; all: Buffer[] } | undefined;
  const hashesOf = async (of: string) => {
    if (hashes?.of !== of) hashes = { of, all: (await FIND_HASHES.all(db, [of])).map(({ hash }) => hash) };
    return hashes.all;
  };
  for (;;) {
    const place = [before?.accountId ?? '', before?.number ?? 0n];
    const links = await LINKS_AFTER.all(db, [...place, CHUNK, chains.isLedger]);
    const records = await chains.read(links.map(({ entryId }) => entryId));
    const byId = new Map(records.map((record) => [record.id, record]));
    for (const link of links) {
      const record = byId.get(link.entryId);
      if (record) known++;
      const previous = before?.accountId === link.accountId ? before : undefined;
      // An anchor lacks its entry and everything before it. The signed heads tell whether they were old.
      const isAnchor = chains.hasAnchors && !previous && !record;
      const wrong = isAnchor ? undefined : await faultOf(link, record, previous, hashesOf);
      const detail = wrong ?? (record && chains.faultOf?.(link, record));
      if (detail && found({ accountId: link.accountId, entryId: link.entryId, detail }) === 'full') return known;
      before = link;
    }
    if (links.length < CHUNK) return known;
  }
}

/** Returns the fault of a link, given the link before it in its chain. */
async function faultOf(
  { accountId, number, hash }: AuditLink,
  record: Chained | undefined,
  previous: AuditLink | undefined,
  hashesOf: (accountId: string) => Promise<Buffer[]>,
): Promise<string | undefined> {
  if (!previous && number > 1n) return `The entries before it were deleted: the chain begins with number ${number}.`;
  if (previous && number > previous.number + 1n)
    return `The entries ${previous.number + 1n} to ${number - 1n} of the chain before it were deleted.`;
  if (!record) return `The entry was deleted. It had the number ${number} of the chain.`;
  if (record.accountId !== accountId) return 'The entry was moved to another account.';
  if (linkHash(previous?.hash ?? NO_HASH, record).equals(hash)) return undefined;
  // The entry itself is as it was if it explains a hash of the chain after another link.
  const hashes = [NO_HASH, ...(await hashesOf(accountId))];
  const known = new Set(hashes.map((one) => one.toString('hex')));
  if (hashes.some((one) => known.has(linkHash(one, record).toString('hex'))))
    return `The entry is out of order: it has the number ${number} of the chain.`;
  return `The entry was changed. It has the number ${number} of the chain.`;
}
