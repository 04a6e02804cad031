/**
 * The signed heads of the hash chains. A signature covers the heads that no signature before it covers, and the digest of
 * the text before. So the latest signature covers all chains, and shows entries that somebody deleted.
 *
 * The canary's key is offline, so it cannot sign every day. The key of the chains is Ed25519, derived from SECRET_KEY.
 * `audit-text.ts` tells which part of a text is signed and published.
 */
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { databaseTime } from '../database/clock.ts';
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, defaulting, entity, type Row, type RowOf } from '../database/table.ts';
import type { Queryable, Transaction } from '../database/transaction.ts';
import type { Vault } from '../secrets.ts';
import {
  readSignedPart,
  readSignedText,
  type SignedText,
  signedPart,
  textDigest,
  writeSignedText,
} from './audit-text.ts';
import { LEDGER_CHAIN, lockChains } from './hash-chain.ts';

export const AuditSignature = entity('audit_signature', {
  number: { ...column.bigint(), primary: true } as column.Column<bigint>,
  signedText: column.text(),
  /** Ed25519, 32 bytes. */
  publicKey: column.bytes(),
  signature: column.bytes(),
  signedAt: defaulting(column.timestamp(), 'clock_timestamp()'),
});
export type AuditSignature = RowOf<typeof AuditSignature>;

/** The signed part of a text, without its last line break. PostgreSQL reads no more of a long text than its beginning. */
const SIGNED_PART_SQL = `split_part(left(signed_text, 4096), E'\\n\\n', 1)`;
/** Whether it is no text of a first version, which names accounts in its signed part. */
const IS_PUBLIC_SQL = `position(E'\\n\\n' in left(signed_text, 4096)) > 0`;
/** The signature before the number $1, or the latest one; with $2, of one of these keys. */
export const SIGNATURE_BEFORE = statement(AuditSignature.columns)`
  select ${columnsOf(AuditSignature)} from audit_signature
    where ($1::bigint is null or number < $1) and ($2::bytea[] is null or public_key = any($2)) order by number desc limit 1`;
/** The first number after $1 that no signature has. */
const FIND_FREE_NUMBER = statement({ number: column.bigint() })`
  select coalesce(min(number), $1::bigint) + 1 as number from audit_signature as taken
    where number > $1 and exists (select from audit_signature where number = $1::bigint + 1)
      and not exists (select from audit_signature where number = taken.number::numeric + 1)`;
const { signedAt: _signed, ...PUBLISHED } = AuditSignature.columns;
/** The signature $1 with the signed part of its text, or the latest one of the keys $2. $3: null, or the number after it. */
export const FIND_PUBLISHED = statement(PUBLISHED)`
  select number, ${SIGNED_PART_SQL} || E'\\n' as signed_text, public_key, signature from audit_signature
    where ${IS_PUBLIC_SQL} and (number = $1 or $1::bigint is null and public_key = any($2))
      and ($3::bigint is null or number < $3) order by number desc limit 1`;
const HEAD = {
  accountId: column.text(),
  number: column.bigint(),
  hash: column.text(),
  createdAt: column.timestamp(),
  first: column.bigint(),
};
/**
 * The heads of each day of the audit log whose links are younger than an hour before $1. Null: all heads. It adds the links above
 * the numbers $3 of the chains $2. A thief can change the times.
 */
const FIND_CHANGED_HEADS = statement(HEAD)`
  select distinct on (account_id, day) account_id, number, encode(hash, 'hex') as hash, created_at,
      min(number) over (partition by account_id, day) as first
    from (
      select audit_link.*, created_at, (created_at at time zone 'UTC')::date as day
        from audit_link join audit_entry on id = entry_id
          left join unnest($2::text[], $3::bigint[]) as covered (of_account, highest) on of_account = audit_link.account_id
        where linked_at >= $1::timestamptz - interval '1 hour' or $1 is null or number > coalesce(highest, 0)) as linked
    order by account_id, day, number desc`;
/** The head of the ledger. Every text has it, because transfers stay for ever, and signatures do not. */
const FIND_LEDGER_HEAD = statement(HEAD)`
  select account_id, number, encode(hash, 'hex') as hash, linked_at as created_at, 1::bigint as first
    from audit_link where account_id = '${LEDGER_CHAIN}' order by number desc limit 1`;
const INSERT_SIGNATURE = statement(AuditSignature.columns)`
  insert into audit_signature (number, signed_text, public_key, signature) values ($1, $2, $3, $4)
    returning ${columnsOf(AuditSignature)}`;

/** The encodings of Ed25519 keys in front of their 32 bytes (RFC 8410). */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex');
const SPKI = Buffer.from('302a300506032b6570032100', 'hex');

/** The key that signs the heads, then those of previous secret keys. */
export const signingKeys = (vault: Vault): [KeyObject, ...KeyObject[]] =>
  vault
    .deriveAll('audit heads')
    .map((seed) => createPrivateKey({ key: Buffer.concat([PKCS8, seed]), format: 'der', type: 'pkcs8' })) as [
    KeyObject,
    ...KeyObject[],
  ];
export const publicKeyOf = (key: KeyObject): Buffer =>
  createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(SPKI.length);

/** Whether the row and the signed part of its text belong together. The row may be junk, also with no key at all. */
function isProven({ number, signedText, publicKey, signature }: Row<typeof PUBLISHED>): boolean {
  try {
    const key = createPublicKey({ key: Buffer.concat([SPKI, publicKey]), format: 'der', type: 'spki' });
    if (!verify(null, Buffer.from(signedPart(signedText)), key, signature)) return false;
    const part = readSignedPart(signedText);
    return part.number === number && part.publicKey.equals(publicKey);
  } catch {
    return false;
  }
}
/** Returns the text of a signature. Undefined: the row, the signature and the heads do not belong together. */
export const provenText = (row: AuditSignature): SignedText | undefined =>
  isProven(row) ? readSignedText(row.signedText) : undefined;

/** A signature as the service publishes it. Bytes are in hexadecimal. */
export interface AuditDigest {
  number: bigint;
  signedAt: Date;
  /** It names no account. */
  signedText: string;
  sha256: string;
  /** Null: it is the first. */
  previousSha256: string | null;
  publicKey: string;
  signature: string;
}

/** Returns the public part of a signature. Null: it names accounts, as those of the first versions do. */
export function publishedOf(signature: Row<typeof PUBLISHED>): AuditDigest | null {
  const { number, publicKey } = signature;
  const signedText = signedPart(signature.signedText);
  const { signedAt, previous, headsDigest } = readSignedPart(signedText);
  if (headsDigest === undefined) return null;
  return {
    ...{ number, signedAt, signedText, sha256: textDigest(signedText), previousSha256: previous || null },
    ...{ publicKey: publicKey.toString('hex'), signature: signature.signature.toString('hex') },
  };
}

/** Finds the digest of a number, or the latest one of the keys. It skips rows that do not prove themselves. */
export async function findPublished(
  db: Queryable,
  number: number | null,
  keys: readonly Buffer[],
): Promise<AuditDigest | null> {
  for (let below: bigint | null = null; ; ) {
    const row: Row<typeof PUBLISHED> | undefined = await FIND_PUBLISHED.first(db, [number, keys, below]);
    if (!row) return null;
    if (isProven(row)) return publishedOf(row);
    below = row.number;
  }
}

/** Returns whether the latest signature is of this key. */
export async function isLatestBy(db: Queryable, key: KeyObject): Promise<boolean> {
  const latest = await SIGNATURE_BEFORE.first(db, [null, null]);
  return latest?.publicKey.equals(publicKeyOf(key)) ?? false;
}

interface Signed {
  row: AuditSignature;
  text: SignedText;
}

/** Finds the latest text that one of the keys signed. A thief of the database can write signatures of other keys alone. */
async function findLatest(
  tx: Transaction,
  keys: readonly Buffer[],
  before: bigint | null = null,
): Promise<Signed | undefined> {
  for (let below = before; ; ) {
    const row: AuditSignature | undefined = await SIGNATURE_BEFORE.first(tx, [below, keys]);
    if (!row) return undefined;
    const text = provenText(row);
    if (text) return { row, text };
    below = row.number;
  }
}

/** Returns the highest number of each chain that a text of the key covers. */
async function coveredBy(tx: Transaction, key: Buffer): Promise<Map<string, bigint>> {
  const covered = new Map<string, bigint>();
  for (let signed = await findLatest(tx, [key]); signed; signed = await findLatest(tx, [key], signed.row.number))
    noteCovered(covered, signed.text);
  return covered;
}
/** Notes the highest number of each chain that a text covers. */
export function noteCovered(covered: Map<string, bigint>, { heads }: SignedText): void {
  for (const { accountId, number } of heads)
    if (number > (covered.get(accountId) ?? 0n)) covered.set(accountId, number);
}

const HOUR_MS = 3_600_000;

/**
 * Signs the heads, unless the same key did so within a day. While SECRET_KEY is replaced, workers have different keys, and
 * each key signs once a day. The text follows the latest one of the given keys, and names the public keys of the other keys.
 * So their signatures stay attributable after a new SECRET_KEY.
 * @param key signs
 * @returns the new signature, or undefined
 */
export async function signHeads(
  tx: Transaction,
  [key, ...others]: readonly [KeyObject, ...KeyObject[]],
): Promise<AuditSignature | undefined> {
  await lockChains(tx);
  const publicKey = publicKeyOf(key);
  const otherKeys = others.map(publicKeyOf);
  const latest = await findLatest(tx, [publicKey, ...otherKeys]);
  const signedAt = await databaseTime(tx);
  const since = latest ? latest.text.signedAt : null;
  // When in doubt, the text covers all heads: after another key, an earlier version, or a clock that was ahead.
  const isSure = ({ text }: Signed) =>
    text.publicKey.equals(publicKey) && text.since !== undefined && +text.signedAt < +signedAt + HOUR_MS;
  // A thief can change the time of the row. An earlier one only makes the next signature earlier.
  const isYoung = ({ row, text }: Signed) => Math.min(+row.signedAt, +text.signedAt) > +signedAt - 24 * HOUR_MS;
  const own = await findLatest(tx, [publicKey]);
  if (own && isSure(own) && isYoung(own)) return undefined;
  const covered = await coveredBy(tx, publicKey);
  const changed = [latest && isSure(latest) ? since : null, [...covered.keys()], [...covered.values()]];
  const heads = [...(await FIND_CHANGED_HEADS.all(tx, changed)), ...(await FIND_LEDGER_HEAD.all(tx))];
  const { number } = (await FIND_FREE_NUMBER.first(tx, [latest?.text.number ?? 0n]))!;
  const previous = latest ? textDigest(latest.row.signedText) : '';
  const text = writeSignedText({ number, previous, signedAt, publicKey, others: otherKeys, since, heads });
  return INSERT_SIGNATURE.first(tx, [number, text, publicKey, sign(null, Buffer.from(signedPart(text)), key)]);
}
