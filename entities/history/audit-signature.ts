/**
 * The signed heads of the hash chains. A signature covers the heads that no signature before it covers, and the digest of
 * the text before. So the latest signature covers all chains, and shows entries that somebody deleted. `audit-sign.ts` makes it.
 *
 * The canary's key is offline, so it cannot sign every day. The key of the chains is Ed25519, derived from SECRET_KEY.
 * `audit-text.ts` tells which part of a text is signed and published.
 */
import { createPrivateKey, createPublicKey, type KeyObject, verify } from 'node:crypto';
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { defaulting, entity, type Row, type RowOf } from '../database/table.ts';
import type { Queryable } from '../database/transaction.ts';
import type { Vault } from '../secrets.ts';
import { readSignedPart, type SignedPart, signedPart, textDigest } from './audit-text.ts';

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
export const IS_PUBLIC_SQL = `position(E'\\n\\n' in left(signed_text, 4096)) > 0`;
/** The signature before the number $1, or the latest one; with $2, of one of these keys. Of its text, it has the signed part. */
export const SIGNATURE_BEFORE = statement(AuditSignature.columns)`
  select number, case when ${IS_PUBLIC_SQL} then ${SIGNED_PART_SQL} || E'\\n' else signed_text end as signed_text,
      public_key, signature, signed_at
    from audit_signature
    where ($1::bigint is null or number < $1) and ($2::bytea[] is null or public_key = any($2)) order by number desc limit 1`;
const { signedAt: _signed, ...PUBLISHED } = AuditSignature.columns;
/** The signature $1 with the signed part of its text, or the latest one of the keys $2. $3: null, or the number after it. */
export const FIND_PUBLISHED = statement(PUBLISHED)`
  select number, ${SIGNED_PART_SQL} || E'\\n' as signed_text, public_key, signature from audit_signature
    where ${IS_PUBLIC_SQL} and (number = $1 or $1::bigint is null and public_key = any($2))
      and ($3::bigint is null or number < $3) order by number desc limit 1`;

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

/** Returns the signed part of a text, if the row belongs to it. The row may be junk, also with no key at all. */
export function provenPart({
  number,
  signedText,
  publicKey,
  signature,
}: Row<typeof PUBLISHED>): SignedPart | undefined {
  try {
    const key = createPublicKey({ key: Buffer.concat([SPKI, publicKey]), format: 'der', type: 'spki' });
    if (!verify(null, Buffer.from(signedPart(signedText)), key, signature)) return undefined;
    const part = readSignedPart(signedText);
    return part.number === number && part.publicKey.equals(publicKey) ? part : undefined;
  } catch {
    return undefined;
  }
}

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
    if (provenPart(row)) return publishedOf(row);
    below = row.number;
  }
}

/** Returns whether the latest signature is of this key. */
export async function isLatestBy(db: Queryable, key: KeyObject): Promise<boolean> {
  const latest = await SIGNATURE_BEFORE.first(db, [null, null]);
  return latest?.publicKey.equals(publicKeyOf(key)) ?? false;
}
