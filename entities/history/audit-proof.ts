/**
 * The proof of the audit log. Every entry is in the hash chain of its account as it was written. Every chain reaches its
 * signed heads. The proof reads everything, so operators run it occasionally.
 */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, nullable, type Row, snake } from '../database/table.ts';
import type { Queryable } from '../database/transaction.ts';
import { AuditEntry } from './audit.ts';
import { AuditLink, findWaiting, linkHash, NO_HASH } from './audit-link.ts';
import {
  type AuditFault,
  type Found,
  type KnownOfAudit,
  proveSignatures,
  type SignatureProof,
} from './audit-signed.ts';

export interface AuditProof extends SignatureProof {
  entries: number;
  /** At most `FAULTS_MAX`. */
  faults: AuditFault[];
  /** Whether there are more faults than these. */
  hasMoreFaults: boolean;
}

const FAULTS_MAX = 50;
const CHUNK = 2_000;

const { accountId: _account, createdAt: _created, id: _id, ...REST } = AuditEntry.columns;
const MAYBE = Object.fromEntries(
  Object.entries(REST).map(([name, one]) => [name, nullable(one as column.Column<unknown>)]),
) as { [K in keyof typeof REST]: column.Column<Row<typeof REST>[K]> };
const LINKED = {
  ...AuditLink.columns,
  ...MAYBE,
  /** Null: the entry is gone. */
  entryAccountId: nullable(column.text()),
  createdAt: nullable(column.timestamp()),
};
type Linked = Row<typeof LINKED>;

/** The links after the place ($1, $2) with their entries, at most $3. */
const LINKS_AFTER = statement(LINKED)`
  select ${columnsOf(AuditLink)}, ${Object.keys(REST)
    .map((name) => `audit_entry.${snake(name)}`)
    .join(', ')},
      audit_entry.account_id as entry_account_id, created_at
    from audit_link left join audit_entry on id = entry_id where (audit_link.account_id, number) > ($1, $2)
    order by audit_link.account_id, number limit $3`;
/** Entries that are neither in a chain nor wait for their link, and waiting ones that are gone. */
const OUTSIDE = statement({ accountId: nullable(column.text()), entryId: column.text() })`
  select account_id, id as entry_id from audit_entry
    where not exists (select from audit_link where entry_id = id) and not exists (select from audit_unlinked where entry_id = id)
  union all select null, entry_id from audit_unlinked where not exists (select from audit_entry where id = entry_id)
  limit $1`;
/** The hashes of the chain of the account $1. */
const FIND_HASHES = statement({ hash: column.bytes() })`
  select hash from audit_link where account_id = $1`;

/** Proves the log. */
export async function proveAudit(db: Queryable, known: KnownOfAudit = {}): Promise<AuditProof> {
  const faults: AuditFault[] = [];
  let hasMoreFaults = false;
  const found: Found = (fault) => {
    if (faults.length < FAULTS_MAX) faults.push(fault);
    else hasMoreFaults = true;
    return hasMoreFaults ? 'full' : 'more';
  };
  const entries = await proveLinks(db, found);
  for (const { accountId, entryId } of await OUTSIDE.all(db, [FAULTS_MAX])) {
    const detail = accountId ? 'The entry is in no chain.' : 'The entry was deleted before it came into its chain.';
    found({ accountId, entryId, detail });
  }
  for (const waiting of await findWaiting(db, FAULTS_MAX)) found(waiting);
  const proof = await proveSignatures(db, known, found);
  return { entries, ...proof, faults, hasMoreFaults };
}

async function proveLinks(db: Queryable, found: Found): Promise<number> {
  let entries = 0;
  let before: Linked | undefined;
  for (;;) {
    const links = await LINKS_AFTER.all(db, [before?.accountId ?? '', before?.number ?? 0n, CHUNK]);
    for (const link of links) {
      if (link.createdAt) entries++;
      const previous = before?.accountId === link.accountId ? before : undefined;
      const detail = await faultOf(db, link, previous);
      if (detail && found({ accountId: link.accountId, entryId: link.entryId, detail }) === 'full') return entries;
      before = link;
    }
    if (links.length < CHUNK) return entries;
  }
}

/** Returns the fault of a link, given the link before it in its chain. */
async function faultOf(db: Queryable, link: Linked, previous: Linked | undefined): Promise<string | undefined> {
  const { accountId, number, hash, createdAt } = link;
  // The anchor: retention deleted its entry and everything before it. The signed heads tell whether they were old.
  if (!previous && !createdAt) return undefined;
  if (!previous && number > 1n) return `The entries before it were deleted: the chain begins with number ${number}.`;
  if (previous && number > previous.number + 1n)
    return `The entries ${previous.number + 1n} to ${number - 1n} of the chain before it were deleted.`;
  if (!createdAt) return `The entry was deleted. It had the number ${number} of the chain.`;
  const entry = entryOf(link);
  if (link.entryAccountId !== accountId) return 'The entry was moved to another account.';
  if (linkHash(previous?.hash ?? NO_HASH, entry).equals(hash)) return undefined;
  // The entry itself is as it was if it explains a hash of the chain after another link.
  const hashes = [NO_HASH, ...(await FIND_HASHES.all(db, [accountId])).map((one) => one.hash)];
  const known = new Set(hashes.map((one) => one.toString('hex')));
  if (hashes.some((one) => known.has(linkHash(one, entry).toString('hex'))))
    return `The entry is out of order: it has the number ${number} of the chain.`;
  return `The entry was changed. It has the number ${number} of the chain.`;
}

const entryOf = ({ number: _number, hash: _hash, linkedAt: _linked, entryId, entryAccountId, ...rest }: Linked) =>
  ({ ...rest, id: entryId, accountId: entryAccountId }) as AuditEntry;
