/**
 * The signed heads of the hash chains. A signature covers the heads that changed since the signature before, and the digest
 * of its text. So the latest signature covers all chains, and shows entries that were deleted at the end of one.
 *
 * The canary's key is offline, so it cannot sign every day. The key of the chains is Ed25519, derived from SECRET_KEY.
 * `audit-text.ts` tells which part of a text is signed and published.
 */
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { databaseTime } from '../database/clock.ts';
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, defaulting, entity, type Row, type RowOf } from '../database/table.ts';
import type { Transaction } from '../database/transaction.ts';
import type { Vault } from '../secrets.ts';
import { lockChains } from './audit-link.ts';
import {
  readSignedPart,
  readSignedText,
  type SignedText,
  signedPart,
  textDigest,
  writeSignedText,
} from './audit-text.ts';

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
const FIND_LATEST = statement(AuditSignature.columns)`
  select ${columnsOf(AuditSignature)} from audit_signature order by number desc limit 1`;
/** A public signature by the key $1 that is not yet a day old. */
const FIND_FRESH = statement({ found: column.boolean() })`
  select true as found from audit_signature
    where public_key = $1 and signed_at >= clock_timestamp() - interval '1 day' and ${IS_PUBLIC_SQL} limit 1`;
const { signedAt: _signed, ...PUBLISHED } = AuditSignature.columns;
/** The signature $1 with the signed part of its text, or the latest one. */
export const FIND_PUBLISHED = statement(PUBLISHED)`
  select number, ${SIGNED_PART_SQL} || E'\\n' as signed_text, public_key, signature from audit_signature
    where ${IS_PUBLIC_SQL} and ($1::bigint is null or number = $1) order by number desc limit 1`;
/** The heads that changed since an hour before $1. Null: all heads. */
const FIND_CHANGED_HEADS = statement({
  accountId: column.text(),
  number: column.bigint(),
  hash: column.text(),
  createdAt: column.timestamp(),
})`
  select distinct on (audit_link.account_id) audit_link.account_id, number, encode(hash, 'hex') as hash, created_at
    from audit_link join audit_entry on id = entry_id where linked_at >= $1::timestamptz - interval '1 hour' or $1 is null
    order by audit_link.account_id, number desc`;
const INSERT_SIGNATURE = statement(AuditSignature.columns)`
  insert into audit_signature (number, signed_text, public_key, signature) values ($1, $2, $3, $4)
    returning ${columnsOf(AuditSignature)}`;
/** The signature after the number $1. */
export const NEXT_SIGNATURE = statement(AuditSignature.columns)`
  select ${columnsOf(AuditSignature)} from audit_signature where number > $1 order by number limit 1`;

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

/** Returns the text of a signature. Undefined: the row, the signature and the heads do not belong together. */
export function provenText({ number, signedText, publicKey, signature }: AuditSignature): SignedText | undefined {
  const key = createPublicKey({ key: Buffer.concat([SPKI, publicKey]), format: 'der', type: 'spki' });
  if (!verify(null, Buffer.from(signedPart(signedText)), key, signature)) return undefined;
  const text = readSignedText(signedText);
  return text?.number === number && text.publicKey.equals(publicKey) ? text : undefined;
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

/**
 * Signs the heads, unless the same key did so within a day. While SECRET_KEY is replaced, workers have different keys. So
 * another key may have made the latest signature. The text names the public keys of the other keys, so that their
 * signatures stay attributable after a new SECRET_KEY.
 * @param key signs
 * @returns the new signature, or undefined
 */
export async function signHeads(
  tx: Transaction,
  [key, ...others]: readonly [KeyObject, ...KeyObject[]],
): Promise<AuditSignature | undefined> {
  await lockChains(tx);
  const publicKey = publicKeyOf(key);
  if (await FIND_FRESH.first(tx, [publicKey])) return undefined;
  const latest = await FIND_LATEST.first(tx);
  const heads = await FIND_CHANGED_HEADS.all(tx, [latest?.signedAt ?? null]);
  const number = (latest?.number ?? 0n) + 1n;
  const previous = latest ? textDigest(latest.signedText) : '';
  const signedAt = await databaseTime(tx);
  const text = writeSignedText({ number, previous, signedAt, publicKey, others: others.map(publicKeyOf), heads });
  return INSERT_SIGNATURE.first(tx, [number, text, publicKey, sign(null, Buffer.from(signedPart(text)), key)]);
}
