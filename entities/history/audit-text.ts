/**
 * The text of signed heads. Its first part is signed and published, and names no account. It ends at the first empty line.
 * A line for each head follows, and the first part has the digest of these lines. The first versions had no empty line,
 * and signed all lines.
 */
import { createHash } from 'node:crypto';

/** A head, as a line of a text. */
export interface SignedHead {
  accountId: string;
  number: bigint;
  /** SHA-256 in hexadecimal. */
  hash: string;
  /** The time of the entry. */
  createdAt: Date;
}
export interface SignedText {
  number: bigint;
  /** The digest of the text before; empty: it is the first. */
  previous: string;
  signedAt: Date;
  /** Ed25519, 32 bytes. */
  publicKey: Buffer;
  /** The keys that the service also had. */
  others: Buffer[];
  heads: SignedHead[];
}

const TITLE = 'freehold audit heads';
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

export const hasPublicPart = (text: string): boolean => text.includes('\n\n');
/** Returns the part that the signature covers. */
export const signedPart = (text: string): string =>
  hasPublicPart(text) ? text.slice(0, text.indexOf('\n\n') + 1) : text;
/** Returns the digest of the signed part. The next text names it. */
export const textDigest = (text: string): string => sha256(signedPart(text));

export function writeSignedText({ number, previous, signedAt, publicKey, others, heads }: SignedText): string {
  const lines = heads
    .map(({ accountId, number, hash, createdAt }) => `${accountId} ${number} ${hash} ${createdAt.toISOString()}\n`)
    .join('');
  const header = [
    `${TITLE} ${number}`,
    `previous ${previous}`,
    `at ${signedAt.toISOString()}`,
    `key ${publicKey.toString('hex')}`,
    ...others.map((key) => `other ${key.toString('hex')}`),
    `heads ${sha256(lines)}`,
  ];
  return `${header.join('\n')}\n\n${lines}`;
}

/** Reads a text. Undefined: the heads are not those that the signed part names. */
export function readSignedText(text: string): SignedText | undefined {
  const [title = '', previous = '', at = '', key = '', ...rest] = signedPart(text).trimEnd().split('\n');
  const valuesOf = (name: string) =>
    rest.flatMap((line) => (line.startsWith(`${name} `) ? line.slice(name.length + 1) : []));
  const [headsDigest] = valuesOf('heads');
  const unsigned = text.slice(signedPart(text).length + 1);
  if (headsDigest !== undefined && headsDigest !== sha256(unsigned)) return undefined;
  const lines = headsDigest === undefined ? rest : unsigned.split('\n').slice(0, -1);
  return {
    number: BigInt(title.slice(TITLE.length)),
    previous: previous.slice('previous '.length),
    signedAt: new Date(at.slice('at '.length)),
    publicKey: Buffer.from(key.slice('key '.length), 'hex'),
    others: valuesOf('other').map((other) => Buffer.from(other, 'hex')),
    heads: lines.map((line) => {
      const [accountId = '', number = '0', hash = '', created = ''] = line.split(' ');
      return { accountId, number: BigInt(number), hash, createdAt: new Date(created) };
    }),
  };
}
