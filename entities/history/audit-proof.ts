/**
 * The proof of the audit log and of the ledger. Every entry and transfer is in its hash chain as it was written. Every chain
 * reaches its signed heads. The proof reads everything, so operators run it occasionally.
 */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, nullable } from '../database/table.ts';
import type { Queryable } from '../database/transaction.ts';
import { type LedgerHead, proveLedger, proveLedgerAfter } from '../payments/ledger-chain.ts';
import type { Mark } from '../payments/proof/mark.ts';
import { AuditEntry } from './audit.ts';
import { chainedEntry, FIT_ENTRIES } from './audit-link.ts';
import { type KnownOfAudit, proveSignatures, type SignatureProof } from './audit-signed.ts';
import { type ChainFault, FAULTS_MAX, type Found, proveLinks } from './chain-proof.ts';
import { findWaiting, LEDGER_CHAIN } from './hash-chain.ts';

export interface AuditProof extends SignatureProof {
  entries: number;
  transfers: number;
  /** At most `FAULTS_MAX`. */
  faults: ChainFault[];
  /** Whether there are more faults than these. */
  hasMoreFaults: boolean;
}

const HOUR_MS = 3_600_000;

const FIND_ENTRIES = statement(AuditEntry.columns)`
  select ${columnsOf(AuditEntry)} from audit_entry where id = any($1)`;
/** Entries that are neither in a chain nor wait for their link, and waiting ones that are gone. */
const OUTSIDE = statement({ accountId: nullable(column.text()), entryId: column.text() })`
  select account_id, id as entry_id from audit_entry
    where not exists (select from audit_link where entry_id = id) and not exists (select from audit_unlinked where entry_id = id)
  union all select null, entry_id from audit_unlinked
    where not exists (select from audit_entry where id = entry_id) and not exists (select from transfer where id = entry_id)
  limit $1`;
/** The link of the ledger, if it has the number $1 and the hash $2. */
const FIND_MARKED = statement({ number: column.bigint() })`
  select number from audit_link where account_id = '${LEDGER_CHAIN}' and number = $1 and hash = decode($2, 'hex')`;
/** Collects faults. */
class Faults {
  readonly faults: ChainFault[] = [];
  hasMoreFaults = false;
  readonly found: Found = (fault) => {
    if (this.faults.length < FAULTS_MAX) this.faults.push(fault);
    else this.hasMoreFaults = true;
    return this.hasMoreFaults ? 'full' : 'more';
  };
}

/** Proves the log and the ledger. */
export async function proveAudit(db: Queryable, known: KnownOfAudit = {}): Promise<AuditProof> {
  const all = new Faults();
  const { found } = all;
  const read = async (ids: string[]) => (await FIND_ENTRIES.all(db, [ids])).map(chainedEntry);
  const fit = async (...place: [string, bigint]) => (await FIT_ENTRIES.first(db, [...place, '-infinity']))!;
  const entries = await proveLinks(db, { isLedger: false, hasAnchors: true, fit, read }, found);
  for (const { accountId, entryId } of await OUTSIDE.all(db, [FAULTS_MAX])) {
    const detail = accountId ? 'The entry is in no chain.' : 'The entry was deleted before it came into its chain.';
    found({ accountId, entryId, detail });
  }
  for (const waiting of await findWaiting(db, FAULTS_MAX)) found(waiting);
  const { heads, ...proof } = await proveHeads(db, known, found);
  const transfers = await proveLedger(db, heads, found);
  return { entries, transfers, ...proof, ...faultsOf(all) };
}

/**
 * Proves what came into the log and the ledger since a mark, and the signatures since. It reads no entry and no transfer that came
 * before.
 */
export async function proveAuditSince(db: Queryable, mark: Mark, publicKeys: readonly Buffer[]): Promise<AuditProof> {
  const all = new Faults();
  const { found } = all;
  const entries = await proveEntriesSince(db, new Date(+mark.provenAt - HOUR_MS), found);
  for (const waiting of await findWaiting(db, FAULTS_MAX)) found(waiting);
  const { heads, ...proof } = await proveHeads(db, { publicKeys, since: mark.signature }, found);
  if (mark.number && !(await FIND_MARKED.first(db, [mark.number, mark.hash])))
    found({ accountId: LEDGER_CHAIN, entryId: null, detail: 'The chain was rewritten after the last whole proof.' });
  const marked = { number: mark.number, signedAt: mark.provenAt };
  const transfers = await proveLedgerAfter(db, mark.number, [marked, ...heads], found);
  return { entries, transfers, ...proof, ...faultsOf(all) };
}

const faultsOf = ({ faults, hasMoreFaults }: Faults) => ({ faults, hasMoreFaults });

/** Proves the signatures, and returns their heads of the ledger as well. */
async function proveHeads(db: Queryable, known: KnownOfAudit, found: Found) {
  const heads: LedgerHead[] = [];
  const proof = await proveSignatures(db, known, found, (number, signedAt) => heads.push({ number, signedAt }));
  return { ...proof, heads };
}

/** Proves the entries whose links say that they came since a time. @returns their number */
async function proveEntriesSince(db: Queryable, since: Date, found: Found): Promise<number> {
  let entries = 0;
  let place: [string, bigint] = ['', 0n];
  for (;;) {
    const { accountId, number, links, known, fitting } = (await FIT_ENTRIES.first(db, [...place, since]))!;
    if (accountId === null) return entries;
    entries += known;
    const wrong = {
      accountId: null,
      entryId: null,
      detail: `Entries since the last whole proof that do not fit: ${links - fitting}.`,
    };
    if (fitting < links && found(wrong) === 'full') return entries;
    place = [accountId, number!];
  }
}
