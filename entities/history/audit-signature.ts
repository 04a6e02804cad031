/**
 * The signed heads of the hash chains. A signature covers the heads that changed since the signature before, and the digest
 * of its text. So the latest signature covers all chains, and shows entries that were deleted at the end of one.
 *
 * The canary's key is offline, so it cannot sign every day. The key of the chains is Ed25519, derived from SECRET_KEY.
 */
import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { databaseTime } from '../database/clock.ts';
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, defaulting, entity, type RowOf } from '../database/table.ts';
import type { Transaction } from '../database/transaction.ts';
import type { Vault } from '../secrets.ts';
import { lockChains } from './audit-link.ts';

export const AuditSignature = entity('audit_signature', {
  number: { ...column.bigint(), primary: true } as column.Column<bigint>,
  /** A header of four lines, and then a line for each head. */
  signedText: column.text(),
  /** Ed25519, 32 bytes. */
  publicKey: column.bytes(),
  signature: column.bytes(),
  signedAt: defaulting(column.timestamp(), 'clock_timestamp()'),
});
export type AuditSignature = RowOf<typeof AuditSignature>;

/** A head, as a line of a signed text. */
export interface SignedHead {
  accountId: string;
  number: bigint;
  /** SHA-256 in hexadecimal. */
  hash: string;
  /** The time of the entry. */
  createdAt: Date;
}

const FIND_LATEST = statement(AuditSignature.columns)`
  select ${columnsOf(AuditSignature)} from audit_signature order by number desc limit 1`;
/** A signature by the key $1 that is not yet a day old. */
const FIND_FRESH = statement({ found: column.boolean() })`
  select true as found from audit_signature
    where public_key = $1 and signed_at >= clock_timestamp() - interval '1 day' limit 1`;
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

const TITLE = 'freehold audit heads';
/** The encodings of Ed25519 keys in front of their 32 bytes (RFC 8410). */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex');
const SPKI = Buffer.from('302a300506032b6570032100', 'hex');

/** The key that signs the heads. */
export const signingKey = (vault: Vault): KeyObject =>
  createPrivateKey({ key: Buffer.concat([PKCS8, vault.derive('audit heads')]), format: 'der', type: 'pkcs8' });
export const publicKeyOf = (key: KeyObject): Buffer =>
  createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(SPKI.length);

export const textDigest = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Whether the signature is that of its own key. */
export const isSigned = ({ signedText, publicKey, signature }: AuditSignature): boolean =>
  verify(
    null,
    Buffer.from(signedText),
    createPublicKey({ key: Buffer.concat([SPKI, publicKey]), format: 'der', type: 'spki' }),
    signature,
  );

/** Reads a signed text. The digest is that of the text before; empty: it is the first. */
export function readSignedText(text: string): { number: bigint; previous: string; heads: SignedHead[] } {
  const [title = '', previous = '', , , ...lines] = text.trimEnd().split('\n');
  const heads = lines.map((line) => {
    const [accountId = '', number = '0', hash = '', at = ''] = line.split(' ');
    return { accountId, number: BigInt(number), hash, createdAt: new Date(at) };
  });
  return { number: BigInt(title.slice(TITLE.length)), previous: previous.slice('previous '.length), heads };
}

/**
 * Signs the heads, unless the same key did so within a day. While SECRET_KEY is replaced, workers have different keys. So
 * another key may have made the latest signature.
 * @returns the new signature, or undefined
 */
export async function signHeads(tx: Transaction, key: KeyObject): Promise<AuditSignature | undefined> {
  await lockChains(tx);
  const publicKey = publicKeyOf(key);
  if (await FIND_FRESH.first(tx, [publicKey])) return undefined;
  const latest = await FIND_LATEST.first(tx);
  const heads = await FIND_CHANGED_HEADS.all(tx, [latest?.signedAt ?? null]);
  const number = (latest?.number ?? 0n) + 1n;
  const text = [
    `${TITLE} ${number}`,
    `previous ${latest ? textDigest(latest.signedText) : ''}`,
    `at ${(await databaseTime(tx)).toISOString()}`,
    `key ${publicKey.toString('hex')}`,
    ...heads.map(({ accountId, number, hash, createdAt }) =>
      [accountId, number, hash, createdAt.toISOString()].join(' '),
    ),
    '',
  ].join('\n');
  return INSERT_SIGNATURE.first(tx, [number, text, publicKey, sign(null, Buffer.from(text), key)]);
}
