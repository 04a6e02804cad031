/** Writes and reads signatures with their heads. */
import { type KeyObject, sign as signBy } from 'node:crypto';
import type { Queryable } from '../../entities/database/transaction.ts';
import { publicKeyOf } from '../../entities/history/audit-signature.ts';
import {
  linesOf,
  readHead,
  type SignedHead,
  type SignedPart,
  textDigest,
  writeSignedPart,
} from '../../entities/history/audit-text.ts';

/** Writes a signature as the service wrote it at another time. @returns the digest of its text */
export async function addSignature(
  db: Queryable,
  key: KeyObject,
  { heads = [], ...given }: Partial<SignedPart & { heads: SignedHead[] }>,
): Promise<string> {
  const publicKey = publicKeyOf(key);
  const part = { number: 1n, previous: '', signedAt: new Date(), publicKey, others: [], ...given };
  const lines = linesOf(heads);
  const text = writeSignedPart(part, lines);
  await db.query(
    'insert into audit_signature (number, signed_text, public_key, signature, signed_at) values ($1, $2, $3, $4, $5)',
    [part.number, `${text}\n${lines}`, publicKey, signBy(null, Buffer.from(text), key), part.signedAt],
  );
  return textDigest(text);
}

/** Reads the heads of a signature as an auditor reads its text. */
export async function signedHeads(db: Queryable, number: bigint): Promise<SignedHead[]> {
  const [row] = await db.query<{ text: string }>('select signed_text as text from audit_signature where number = $1', [
    number,
  ]);
  const { text } = row!;
  return text
    .slice(text.indexOf('\n\n') + 2)
    .split('\n')
    .slice(0, -1)
    .map(readHead);
}
