/**
 * The proof of the audit log and of the ledger. Every entry and transfer is in its hash chain as it was written. Every chain
 * reaches its signed heads. The proof reads everything, so operators run it occasionally.
 */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, nullable } from '../database/table.ts';
import type { Queryable } from '../database/transaction.ts';
import { type LedgerHead, proveLedger } from '../payments/ledger-chain.ts';
import { AuditEntry } from './audit.ts';
import { chainedEntry } from './audit-link.ts';
import { type KnownOfAudit, proveSignatures, type SignatureProof } from './audit-signed.ts';
import { type ChainFault, type Found, proveLinks } from './chain-proof.ts';
import { findWaiting, LEDGER_CHAIN } from './hash-chain.ts';

export interface AuditProof extends SignatureProof {
  entries: number;
  transfers: number;
  /** At most `FAULTS_MAX`. */
  faults: ChainFault[];
  /** Whether there are more faults than these. */
  hasMoreFaults: boolean;
}

const FAULTS_MAX = 50;

const FIND_ENTRIES = statement(AuditEntry.columns)`
  select ${columnsOf(AuditEntry)} from audit_entry where id = any($1)`;
/** Entries that are neither in a chain nor wait for their link, and waiting ones that are gone. */
const OUTSIDE = statement({ accountId: nullable(column.text()), entryId: column.text() })`
  select account_id, id as entry_id from audit_entry
    where not exists (select from audit_link where entry_id = id) and not exists (select from audit_unlinked where entry_id = id)
  union all select null, entry_id from audit_unlinked
    where not exists (select from audit_entry where id = entry_id) and not exists (select from transfer where id = entry_id)
  limit $1`;
/** Proves the log and the ledger. */
export async function proveAudit(db: Queryable, known: KnownOfAudit = {}): Promise<AuditProof> {
  const faults: ChainFault[] = [];
  let hasMoreFaults = false;
  const found: Found = (fault) => {
    if (faults.length < FAULTS_MAX) faults.push(fault);
    else hasMoreFaults = true;
    return hasMoreFaults ? 'full' : 'more';
  };
  const read = async (ids: string[]) => (await FIND_ENTRIES.all(db, [ids])).map(chainedEntry);
  const entries = await proveLinks(db, { isLedger: false, hasAnchors: true, read }, found);
  for (const { accountId, entryId } of await OUTSIDE.all(db, [FAULTS_MAX])) {
    const detail = accountId ? 'The entry is in no chain.' : 'The entry was deleted before it came into its chain.';
    found({ accountId, entryId, detail });
  }
  for (const waiting of await findWaiting(db, FAULTS_MAX)) found(waiting);
  const heads: LedgerHead[] = [];
  const proof = await proveSignatures(db, known, found, ({ signedAt, heads: signed }) => {
    for (const { accountId, number } of signed) if (accountId === LEDGER_CHAIN) heads.push({ number, signedAt });
  });
  const transfers = await proveLedger(db, heads, found);
  return { entries, transfers, ...proof, faults, hasMoreFaults };
}
