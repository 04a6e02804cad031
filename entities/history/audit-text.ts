/**
 * The text of signed heads. Its first part is signed and published, and names no account. It ends at the first empty line.
 * A line for each head follows, and the first part has the digest of these lines. The first versions had no empty line,
 * and signed all lines.
 *
 * A chain has a head for each day of its entries. So the lines tell the age of every number, and the proof sees entries
 * that somebody deleted before their time. Earlier versions signed only the last head of a chain.
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
  /** The first number of the same day that the text covers. Undefined: a text of an earlier version. */
  first?: bigint | undefined;
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
  /** The time of the text before. Null: it is the first. Undefined: a text of an earlier version. */
  since?: Date | null | undefined;
  /** The digest of the lines after it. Undefined: it is a text of a first version, and has the lines itself. */
  headsDigest: string | undefined;
}

const TITLE = 'freehold audit heads';
/** The lines before the heads in a text of a first version. */
export const HEADER_LINES = 4;
export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

const hasPublicPart = (text: string): boolean => text.includes('\n\n');
/** Returns the part that the signature covers. */
export const signedPart = (text: string): string =>
  hasPublicPart(text) ? text.slice(0, text.indexOf('\n\n') + 1) : text;
/** Returns the digest of the signed part. The next text names it. */
export const textDigest = (text: string): string => sha256(signedPart(text));

const lineOf = ({ accountId, number, hash, createdAt, first }: SignedHead): string =>
  `${[accountId, number, hash, createdAt.toISOString(), ...(first === undefined ? [] : [first])].join(' ')}\n`;
/** Returns the lines of heads. */
export const linesOf = (heads: readonly SignedHead[]): string => heads.map(lineOf).join('');

/** Writes the signed part of a text with these lines of heads. An empty line and these lines follow it. */
export function writeSignedPart(part: Omit<SignedPart, 'headsDigest'>, lines: string): string {
  const { number, previous, signedAt, publicKey, others, since } = part;
  const header = [
    `${TITLE} ${number}`,
    `previous ${previous}`,
    `at ${signedAt.toISOString()}`,
    `key ${publicKey.toString('hex')}`,
    ...others.map((key) => `other ${key.toString('hex')}`),
    ...(since === undefined ? [] : [`since ${since?.toISOString() ?? ''}`]),
    `heads ${sha256(lines)}`,
  ];
  return `${header.join('\n')}\n`;
}

/** Reads the signed part of a text. */
export function readSignedPart(text: string): SignedPart {
  const [title = '', previous = '', at = '', key = '', ...rest] = signedPart(text).split('\n');
  const valuesOf = (name: string) =>
    rest.flatMap((line) => (line.startsWith(`${name} `) ? line.slice(name.length + 1) : []));
  const [since] = valuesOf('since');
  return {
    number: BigInt(title.slice(TITLE.length)),
    previous: previous.slice('previous '.length),
    signedAt: new Date(at.slice('at '.length)),
    publicKey: Buffer.from(key.slice('key '.length), 'hex'),
    others: valuesOf('other').map((other) => Buffer.from(other, 'hex')),
    since: since ? new Date(since) : since === '' ? null : undefined,
    headsDigest: valuesOf('heads')[0],
  };
}

/** Reads the line of a head, without its line break. */
export function readHead(line: string): SignedHead {
  const [accountId = '', number = '0', hash = '', created = '', first] = line.split(' ');
  return {
    ...{ accountId, number: BigInt(number), hash, createdAt: new Date(created) },
    first: first === undefined ? undefined : BigInt(first),
  };
}
