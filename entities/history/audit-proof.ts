/**
 * The proof of the audit log. Every entry is in the hash chain of its account as it was written. Every chain reaches its
 * signed heads. The proof reads everything, so operators run it occasionally.
 */
import { isDeepStrictEqual } from 'node:util';
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, nullable, type Row, snake } from '../database/table.ts';
import type { Queryable } from '../database/transaction.ts';
import { AUDIT_DAYS, AuditEntry } from './audit.ts';
import { AuditLink, linkHash, NO_HASH } from './audit-link.ts';
import { NEXT_SIGNATURE, provenText } from './audit-signature.ts';
import { type SignedHead, type SignedText, textDigest } from './audit-text.ts';

/** A place where the log is not as it was written. */
export interface AuditFault {
  /** Null: a signature covers many accounts. */
  accountId: string | null;
  /** The entry, or the first one after a gap. Null: it is not known. */
  entryId: string | null;
  detail: string;
}
/** Facts that the proof compares with the database. */
export interface KnownOfAudit {
  /** The keys of the signatures. Empty: the proof does not check who signed. */
  publicKeys?: readonly Buffer[];
  /** Digests that the service published, in hexadecimal. */
  digests?: readonly string[];
}
export interface AuditProof {
  entries: number;
  signatures: number;
  /** The digest of the latest signed text, in hexadecimal. Null: no signature. */
  latestDigest: string | null;
  /** Signatures of keys that the service never had, as far as its signed texts name its keys. */
  foreignSignatures: number;
  /** The given digests that no signed text has. */
  missingDigests: string[];
  /** At most `FAULTS_MAX`. */
  faults: AuditFault[];
}

const FAULTS_MAX = 50;
const CHUNK = 2_000;
/** Clocks of the database and of this process differ a little. */
const KEPT_MS = (AUDIT_DAYS - 1) * 86_400_000;

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
/** For each signed head ($1 account, $2 number): the hash of its link, and the oldest and newest kept numbers. */
const FIND_SIGNED = statement({
  place: column.int(),
  hash: nullable(column.text()),
  oldest: nullable(column.bigint()),
  newest: nullable(column.bigint()),
})`
  select place::int, (select encode(hash, 'hex') from audit_link where account_id = given.account_id and number = given.number) as hash,
      (select min(number) from audit_link where account_id = given.account_id) as oldest,
      (select max(number) from audit_link where account_id = given.account_id) as newest
    from unnest($1::text[], $2::bigint[]) with ordinality as given(account_id, number, place) order by place`;

type Found = (fault: AuditFault) => 'more' | 'full';

/** Proves the log. */
export async function proveAudit(db: Queryable, known: KnownOfAudit = {}): Promise<AuditProof> {
  const faults: AuditFault[] = [];
  const found: Found = (fault) => {
    // Several signatures may show the same fault.
    const isKnown = faults.some((known) => isDeepStrictEqual(known, fault));
    if (!isKnown && faults.length < FAULTS_MAX) faults.push(fault);
    return faults.length < FAULTS_MAX ? 'more' : 'full';
  };
  const entries = await proveLinks(db, found);
  for (const { accountId, entryId } of await OUTSIDE.all(db, [FAULTS_MAX])) {
    const detail = accountId ? 'The entry is in no chain.' : 'The entry was deleted before it came into its chain.';
    found({ accountId, entryId, detail });
  }
  return { entries, ...(await proveSignatures(db, known, found)), faults };
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
  // The anchor: retention deleted its entry and everything before it.
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

async function proveSignatures(db: Queryable, { publicKeys = [], digests = [] }: KnownOfAudit, found: Found) {
  const signed: Pick<SignedText, 'publicKey' | 'others'>[] = [];
  const missing = new Set(digests);
  let latestDigest: string | null = null;
  const wrong = (number: bigint, detail: string) =>
    found({ accountId: null, entryId: null, detail: `Signature ${number}: ${detail}` });
  for (let number = 0n; ; ) {
    const next = await NEXT_SIGNATURE.first(db, [number]);
    if (!next) break;
    const text = provenText(next);
    if (!text) wrong(next.number, 'it does not fit its text.');
    if (latestDigest !== null && (next.number !== number + 1n || (text && text.previous !== latestDigest)))
      wrong(next.number, 'it does not follow the one before it.');
    const heads = text?.heads ?? [];
    for (let at = 0; at < heads.length; at += CHUNK) await proveHeads(db, heads.slice(at, at + CHUNK), found);
    signed.push({ publicKey: next.publicKey, others: text?.others ?? [] });
    latestDigest = textDigest(next.signedText);
    if (text) missing.delete(latestDigest);
    number = next.number;
  }
  const foreignSignatures = publicKeys.length ? foreignOf(signed, publicKeys) : 0;
  return { signatures: signed.length, foreignSignatures, latestDigest, missingDigests: [...missing] };
}

/** Counts the signatures of other keys than the given ones, and than the keys that their texts name. */
function foreignOf(signed: readonly Pick<SignedText, 'publicKey' | 'others'>[], publicKeys: readonly Buffer[]): number {
  const known = new Set(publicKeys.map((key) => key.toString('hex')));
  const isKnown = ({ publicKey }: { publicKey: Buffer }) => known.has(publicKey.toString('hex'));
  for (let before = 0; before < known.size; ) {
    before = known.size;
    for (const { others } of signed.filter(isKnown)) for (const other of others) known.add(other.toString('hex'));
  }
  return signed.filter((one) => !isKnown(one)).length;
}

async function proveHeads(db: Queryable, heads: readonly SignedHead[], found: Found) {
  const kept = await FIND_SIGNED.all(db, [heads.map(({ accountId }) => accountId), heads.map(({ number }) => number)]);
  for (const [place, { accountId, number, hash, createdAt }] of heads.entries()) {
    const link = kept[place]!;
    if (link.hash === hash) continue;
    const isOld = createdAt.getTime() < Date.now() - KEPT_MS;
    if (link.hash === null && isOld && (link.oldest === null || number < link.oldest)) continue;
    const entryId = null;
    if (link.hash !== null)
      found({ accountId, entryId, detail: `The chain was rewritten after number ${number} was signed.` });
    else if (link.newest === null)
      found({ accountId, entryId, detail: `The whole chain was deleted: it had ${number} entries.` });
    else if (number > link.newest)
      found({
        accountId,
        entryId,
        detail: `The entries ${link.newest + 1n} to ${number} were deleted at the end of the chain.`,
      });
    else found({ accountId, entryId, detail: `The entries up to number ${number} were deleted before their time.` });
  }
}
