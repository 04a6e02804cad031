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
/** The signed part of a text. */
export interface SignedPart {
  number: bigint;
  /** The digest of the text before; empty: it is the first. */
  previous: string;
  signedAt: Date;
  /** Ed25519, 32 bytes. */
  publicKey: Buffer;
  /** The keys that the service also had. */
  others: Buffer[];
  /** The digest of the lines after it. Undefined: it is a text of a first version, and has the lines itself. */
  headsDigest: string | undefined;
}
export interface SignedText extends SignedPart {
  heads: SignedHead[];
}

const TITLE = 'freehold audit heads';
/** The lines before the heads in a text of a first version. */
const HEADER_LINES = 4;
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

const hasPublicPart = (text: string): boolean => text.includes('\n\n');
/** Returns the part that the signature covers. */
export const signedPart = (text: string): string =>
  hasPublicPart(text) ? text.slice(0, text.indexOf('\n\n') + 1) : text;
/** Returns the digest of the signed part. The next text names it. */
export const textDigest = (text: string): string => sha256(signedPart(text));

export function writeSignedText(text: Omit<SignedText, 'headsDigest'>): string {
  const { number, previous, signedAt, publicKey, others, heads } = text;
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

/** Reads the signed part of a text. */
export function readSignedPart(text: string): SignedPart {
  const [title = '', previous = '', at = '', key = '', ...rest] = signedPart(text).split('\n');
  const valuesOf = (name: string) =>
    rest.flatMap((line) => (line.startsWith(`${name} `) ? line.slice(name.length + 1) : []));
  return {
    number: BigInt(title.slice(TITLE.length)),
    previous: previous.slice('previous '.length),
    signedAt: new Date(at.slice('at '.length)),
    publicKey: Buffer.from(key.slice('key '.length), 'hex'),
    others: valuesOf('other').map((other) => Buffer.from(other, 'hex')),
    headsDigest: valuesOf('heads')[0],
  };
}

/** Reads a text. Undefined: the heads are not those that the signed part names. */
export function readSignedText(text: string): SignedText | undefined {
  const part = readSignedPart(text);
  const { headsDigest } = part;
  const unsigned = text.slice(signedPart(text).length + 1);
  if (headsDigest !== undefined && headsDigest !== sha256(unsigned)) return undefined;
  const lines = headsDigest === undefined ? text.split('\n').slice(HEADER_LINES) : unsigned.split('\n');
  const heads = lines.slice(0, -1).map((line) => {
    const [accountId = '', number = '0', hash = '', created = ''] = line.split(' ');
    return { accountId, number: BigInt(number), hash, createdAt: new Date(created) };
  });
  return { ...part, heads };
}
