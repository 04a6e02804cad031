/**
 * The proof of the signatures of the audit log. It begins with the latest one. Each text names the digest of the text before,
 * and older keys of the service. So trust leads from the present keys backwards: an old key signs nothing new.
 */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { nullable } from '../database/table.ts';
import type { Queryable } from '../database/transaction.ts';
import { AUDIT_DAYS } from './audit.ts';
import { coveredSql, hasItsLines, headsBackwards, linesDigest } from './audit-lines.ts';
import { provenPart, SIGNATURE_BEFORE } from './audit-signature.ts';
import { type SignedHead, type SignedPart, textDigest } from './audit-text.ts';
import { type ChainFault, FAULTS_MAX, type Found } from './chain-proof.ts';
import { LEDGER_CHAIN } from './hash-chain.ts';

/** Facts that the proof compares with the database. */
export interface KnownOfAudit {
  /** The keys of the signatures. Empty: the proof does not check who signed. */
  publicKeys?: readonly Buffer[];
  /** Digests that the service published, in hexadecimal. */
  digests?: readonly string[];
  /** The digest of the latest text that an earlier proof covered. The proof then ends there. */
  since?: string | null;
}
export interface SignatureProof {
  signatures: number;
  /** Signatures of keys that no key of the service names. Each is a fault, too. */
  foreignSignatures: number;
  /** The latest signed text: its digest in hexadecimal, and its time. Null: no signature. */
  latest: { digest: string; signedAt: Date } | null;
  /** The time of the oldest signed text. */
  firstSignedAt: Date | null;
  /** The given digests that no signed text has. */
  missingDigests: string[];
}

const DAY_MS = 86_400_000;
/** A head covers the entries of a day. Clocks of the database and of this process differ a little, too. */
const ENTRY_KEPT_MS = (AUDIT_DAYS - 1) * DAY_MS - 3_600_000;
/** The tables keep signatures for 97 days. The next one is a day younger, and texts of earlier versions tell only its time. */
const SIGNATURE_KEPT_MS = 95 * DAY_MS;
const isOlder = (time: Date, ms: number): boolean => time.getTime() < Date.now() - ms;

/** For each signed head ($1 account, $2 number): its link, and the bounds of the chain. */
const FIND_SIGNED = statement({
  hash: nullable(column.text()),
  entryId: nullable(column.text()),
  oldestEntryId: nullable(column.text()),
  /** The number of the oldest entry. Its link may have an anchor before it. */
  oldest: nullable(column.bigint()),
  newest: nullable(column.bigint()),
})`
  select encode(link.hash, 'hex') as hash, link.entry_id, oldest.entry_id as oldest_entry_id,
      oldest.number + (case when given.account_id = '${LEDGER_CHAIN}' or exists (select from audit_entry where id = oldest.entry_id)
        then 0 else 1 end) as oldest,
      (select max(number) from audit_link where account_id = given.account_id) as newest
    from unnest($1::text[], $2::bigint[]) with ordinality as given(account_id, number, place)
      left join audit_link as link on link.account_id = given.account_id and link.number = given.number
      left join lateral (
        select number, entry_id from audit_link where account_id = given.account_id order by number limit 1) as oldest on true
    order by place`;
/**
 * The links that no text with a digest of $1 covers. They are an hour older than the time $2 of the latest signature. Signatures of
 * entries older than $3 days may be gone. It adds the links of the future, an hour from now. At most $4.
 */
const FIND_UNCOVERED = statement({
  accountId: column.text(),
  entryId: column.text(),
  isFuture: column.boolean(),
  first: column.bigint(),
  last: column.bigint(),
})`
  with ${coveredSql('$1')}
  select account_id, (array_agg(entry_id order by number))[1] as entry_id, is_future, min(number) as first, max(number) as last
    from (
      select audit_link.*, linked_at > clock_timestamp() + interval '1 hour' as is_future,
          linked_at < $2::timestamptz - interval '1 hour' and number > coalesce(highest, 0)
            and (created_at > now() - $3 * interval '1 day' or audit_link.account_id = '${LEDGER_CHAIN}') as is_uncovered
        from audit_link left join audit_entry on id = entry_id left join covered on covered.account_id = audit_link.account_id
    ) as link
    where is_future or is_uncovered group by account_id, is_future order by account_id, is_future limit $4`;
type Kept = { hash: string | null; entryId: string | null; oldestEntryId: string | null } & Record<
  'oldest' | 'newest',
  bigint | null
>;

/** Proves the signatures, and that the chains reach their heads. It passes the heads of the ledger on, the latest first. */
export async function proveSignatures(
  db: Queryable,
  { publicKeys = [], digests = [], since }: KnownOfAudit,
  found: Found,
  onLedgerHead: (number: bigint, signedAt: Date) => void,
): Promise<SignatureProof> {
  const trusted = new Set(publicKeys.map((key) => key.toString('hex')));
  const proof: SignatureProof = {
    ...{ signatures: 0, foreignSignatures: 0, latest: null, firstSignedAt: null, missingDigests: [...digests] },
  };
  const ofSignatures: ChainFault[] = [];
  const wrong = (number: bigint, detail: string) =>
    ofSignatures.push({ accountId: null, entryId: null, detail: `Signature ${number}: ${detail}` });
  const ofChains = new Map<string, ChainFault>();
  const covered: string[] = [];
  let later: SignedPart | undefined;
  let isReached = false;
  for (let below: bigint | null = null; ; ) {
    const row = await SIGNATURE_BEFORE.first(db, [below, null]);
    if (!row) break;
    below = row.number;
    proof.signatures++;
    if (publicKeys.length && !trusted.has(row.publicKey.toString('hex'))) {
      proof.foreignSignatures++;
      wrong(row.number, 'neither SECRET_KEY nor a later signature names its key. Is SECRET_KEY the current one?');
      continue;
    }
    const digest = textDigest(row.signedText);
    if (later && later.previous !== digest) wrong(later.number, 'it does not follow the one before it.');
    const part = provenPart(row);
    const signed = part && { ...row, part };
    later = signed && (await hasItsLines(db, signed)) ? part : undefined;
    if (!signed || !later) {
      wrong(row.number, 'it does not fit its text.');
      continue;
    }
    for (const key of later.others) trusted.add(key.toString('hex'));
    proof.latest ??= { digest, signedAt: later.signedAt };
    proof.firstSignedAt = later.signedAt;
    proof.missingDigests = proof.missingDigests.filter((one) => one !== digest);
    isReached = digest === since;
    if (isReached) break;
    covered.push(linesDigest(signed));
    for await (const heads of headsBackwards(db, signed)) {
      for (const { accountId, number } of heads)
        if (accountId === LEDGER_CHAIN) onLedgerHead(number, signed.part.signedAt);
      await proveHeads(db, heads, ofChains);
    }
  }
  if (isReached) later = undefined;
  else if (since) wrong(later?.number ?? 0n, 'the one that the last whole proof covered was deleted.');
  if (later?.previous && !isOlder(later.since ?? later.signedAt, SIGNATURE_KEPT_MS))
    wrong(later.number, 'the signatures before it were deleted before their time.');
  const uncovered = since === undefined ? await findUncovered(db, covered, proof.latest?.signedAt) : [];
  for (const fault of [...ofChains.values(), ...ofSignatures, ...uncovered]) found(fault);
  return proof;
}

/** Finds links without a signature whose time says that the latest one covers them. A thief can change the times. */
async function findUncovered(db: Queryable, digests: readonly string[], at?: Date): Promise<ChainFault[]> {
  const given = [digests, at ?? null, AUDIT_DAYS, FAULTS_MAX + 1];
  return (await FIND_UNCOVERED.all(db, given)).map(({ accountId, entryId, isFuture, first, last }) => ({
    ...{ accountId, entryId },
    detail: isFuture
      ? `The entries ${first} to ${last} came into the chain in the future.`
      : `The entries ${first} to ${last} are older than the latest signature, but no signature covers them.`,
  }));
}

/** Compares heads with the chains, the newest first. It keeps one fault of each kind for a chain, of no more than the first chains. */
async function proveHeads(db: Queryable, heads: readonly SignedHead[], faults: Map<string, ChainFault>): Promise<void> {
  const kept = await FIND_SIGNED.all(db, [heads.map(({ accountId }) => accountId), heads.map(({ number }) => number)]);
  for (const [place, head] of heads.entries()) {
    const fault = faultOf(head, kept[place]!);
    if (!fault) continue;
    const { kind, ...rest } = fault;
    const key = `${kind} ${head.accountId}`;
    // The oldest head that differs is the nearest to the change.
    if (faults.has(key) ? kind === 'rewritten' : faults.size <= FAULTS_MAX)
      faults.set(key, { accountId: head.accountId, ...rest });
  }
}

function faultOf(
  { accountId, number, first = number, hash, createdAt }: SignedHead,
  { oldest, newest, ...kept }: Kept,
): { kind: string; entryId: string | null; detail: string } | undefined {
  const isOld = accountId !== LEDGER_CHAIN && isOlder(createdAt, ENTRY_KEPT_MS);
  if (kept.hash !== null && kept.hash !== hash) {
    const detail = `The chain was rewritten after number ${number} was signed.`;
    return { kind: 'rewritten', entryId: kept.entryId, detail };
  }
  if (oldest === null || newest === null) {
    const detail = `The whole chain was deleted: it had ${number} entries.`;
    return isOld ? undefined : { kind: 'deleted', entryId: null, detail };
  }
  if (number > newest) {
    const detail = `The entries ${newest + 1n} to ${number} were deleted at the end of the chain.`;
    return { kind: 'end', entryId: null, detail };
  }
  if (isOld || oldest <= first) return undefined;
  const detail = `The entries up to number ${oldest - 1n} were deleted before their time.`;
  return { kind: 'beginning', entryId: kept.oldestEntryId, detail };
}
