/**
 * The proof of hash chains: every record is in its chain as it was written. PostgreSQL passes over the links that fit. Only a
 * step with another link comes into this process, which names the faults.
 */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf } from '../database/table.ts';
import type { Queryable } from '../database/transaction.ts';
import type { Fit } from './chain-fit.ts';
import { AuditLink, type Chained, LEDGER_CHAIN, linkHash, NO_HASH } from './hash-chain.ts';

/** A place where a chain is not as it was written. */
export interface ChainFault {
  /** The account, or `LEDGER_CHAIN`. Null: a signature covers many chains. */
  accountId: string | null;
  /** The entry or transfer, or the next known one. Null: it is not known. */
  entryId: string | null;
  detail: string;
}
/** A proof names at most so many faults. */
export const FAULTS_MAX = 50;
/** Takes a fault, and tells whether it takes more. */
export type Found = (fault: ChainFault) => 'more' | 'full';

/** Chains of one kind of records. */
export interface Chains {
  /** Whether it is the chain of the ledger. Otherwise it is those of the audit log. */
  isLedger: boolean;
  /** Whether retention deletes the beginning of a chain. It leaves the last deleted link as the anchor. */
  hasAnchors: boolean;
  /** The number after which the proof of the ledger begins. */
  after?: bigint;
  /** Counts the fitting links of the next step after a place. */
  fit(accountId: string, number: bigint): Promise<Fit>;
  /** Reads the records with these ids, in any order. */
  read(ids: string[]): Promise<Chained[]>;
  /** The earliest time of the records of a step after this number. Undefined: any time is right. */
  earliest?(number: bigint): number;
}

/** The links after the place ($1, $2), at most $3. $4: of the ledger. */
const LINKS_AFTER = statement(AuditLink.columns)`
  select ${columnsOf(AuditLink)} from audit_link
    where (account_id, number) > ($1, $2) and (account_id = '${LEDGER_CHAIN}') = $4 order by account_id, number limit $3`;
const FIND_LINK = statement(AuditLink.columns)`
  select ${columnsOf(AuditLink)} from audit_link where account_id = $1 and number = $2`;
/** The hashes of the chain $1. */
const FIND_HASHES = statement({ hash: column.bytes() })`
  select hash from audit_link where account_id = $1`;

/** Proves chains. @returns the number of their records */
export async function proveLinks(db: Queryable, chains: Chains, found: Found): Promise<number> {
  let known = 0;
  let [accountId, number] = [chains.isLedger ? LEDGER_CHAIN : '', chains.after ?? 0n];
  for (;;) {
    const step = await chains.fit(accountId, number);
    if (step.accountId === null) return known;
    known += step.known;
    const isEarly = step.oldest !== null && +step.oldest < (chains.earliest?.(number) ?? Number.NEGATIVE_INFINITY);
    if (step.fitting < step.links || isEarly)
      if ((await nameFaults(db, chains, { accountId, number, links: step.links }, found)) === 'full') return known;
    [accountId, number] = [step.accountId, step.number!];
  }
}

/** Names the faults of so many links after a place. */
async function nameFaults(
  db: Queryable,
  chains: Chains,
  { accountId, number, links: most }: { accountId: string; number: bigint; links: number },
  found: Found,
): Promise<'more' | 'full'> {
  let before = await FIND_LINK.first(db, [accountId, number]);
  let hashes: { of: string; all: Buffer[] } | undefined;
  const hashesOf = async (of: string) => {
    if (hashes?.of !== of) hashes = { of, all: (await FIND_HASHES.all(db, [of])).map(({ hash }) => hash) };
    return hashes.all;
  };
  const links = await LINKS_AFTER.all(db, [accountId, number, most, chains.isLedger]);
  const records = await chains.read(links.map(({ entryId }) => entryId));
  const byId = new Map(records.map((record) => [record.id, record]));
  for (const link of links) {
    const record = byId.get(link.entryId);
    const previous = before?.accountId === link.accountId ? before : undefined;
    // An anchor lacks its entry and everything before it. The signed heads tell whether they were old.
    const isAnchor = chains.hasAnchors && !previous && !record;
    const wrong = isAnchor ? undefined : await faultOf(link, record, previous, hashesOf);
    const isEarly = record && +record.createdAt < (chains.earliest?.(number) ?? Number.NEGATIVE_INFINITY);
    const detail =
      wrong ??
      (isEarly && `The transfer has the time ${record.createdAt.toISOString()}, but a later signature lacks it.`);
    if (detail && found({ accountId: link.accountId, entryId: link.entryId, detail }) === 'full') return 'full';
    before = link;
  }
  return 'more';
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
