/** SSH public keys made by hand, so that a test can break one part at a time. */
import { generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import { parseSshPublicKey } from '../../entities/accounts/ssh-public-key.ts';
import { ApiError, type ErrorCode } from '../../entities/errors.ts';

const field = (value: string | Buffer) => {
  const bytes = Buffer.from(value as string, 'latin1');
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
};
export const fields = (...values: (string | Buffer)[]) => Buffer.concat(values.map(field));
export const line = (type: string, blob: Buffer, comment = '') =>
  `${type} ${blob.toString('base64')} ${comment}`.trim();
/** A line whose data begin with its own type. */
export const keyLine = (type: string, ...rest: (string | Buffer)[]) => line(type, fields(type, ...rest));
export const fromHex = (hex: string) => Buffer.from(hex.length % 2 ? `0${hex}` : hex, 'hex');
export const natural = (value: bigint) => {
  const bytes = fromHex(value.toString(16));
  return bytes[0]! & 0x80 ? Buffer.concat([Buffer.of(0), bytes]) : bytes;
};
export const coordinatesOf = (key: KeyObject) => {
  const { x = '', y = '' } = key.export({ format: 'jwk' });
  return { x: Buffer.from(x, 'base64url'), y: Buffer.from(y, 'base64url') };
};
export const newEd25519 = (): Buffer => coordinatesOf(generateKeyPairSync('ed25519').publicKey).x;
const newPoint = (namedCurve: string) => coordinatesOf(generateKeyPairSync('ec', { namedCurve }).publicKey);

export const ED25519 = newEd25519();
export const ed25519 = (point = ED25519) => keyLine('ssh-ed25519', point);
export const P256 = newPoint('P-256');
export const P384 = newPoint('P-384');
export const P521 = newPoint('P-521');
export const point = ({ x, y }: { x: Buffer; y: Buffer }) => Buffer.concat([Buffer.of(4), x, y]);
export const ecdsa = (bits: number, q: Buffer, curve = `nistp${bits}`) => keyLine(`ecdsa-sha2-nistp${bits}`, curve, q);
export const SK_ED25519 = keyLine('sk-ssh-ed25519@openssh.com', ED25519, 'ssh:');
export const SK_ECDSA = keyLine('sk-ecdsa-sha2-nistp256@openssh.com', 'nistp256', point(P256), 'ssh:laptop');
export const rsa = (modulus: bigint, exponent = 65537n) => keyLine('ssh-rsa', natural(exponent), natural(modulus));

const primes = Array.from({ length: 750 }, (_, i) => i + 2).filter(
  (n, _, all) => !all.some((d) => d < n && n % d === 0),
);
const divisible = (value: bigint) => primes.some((prime) => value % BigInt(prime) === 0n);
/** A number that the parser accepts as a product of two primes, because only factoring could tell them apart. */
export function modulusOf(bits: number): bigint {
  for (;;) {
    const random = BigInt(`0x${randomBytes(Math.ceil(bits / 8)).toString('hex')}`);
    const modulus = BigInt.asUintN(bits - 1, random) | (1n << BigInt(bits - 1)) | 1n;
    if (!divisible(modulus)) return modulus;
  }
}
export const MODULUS = modulusOf(2048);
/** A modulus of the flawed library of CVE-2017-15361: a power of 65537 modulo the product of small primes. */
export function rocaModulus(): bigint {
  const product = primes.filter((prime) => prime > 2 && prime < 168).reduce((all, prime) => all * BigInt(prime), 1n);
  for (let power = 65537n; ; power = (power * 65537n) % product) {
    const modulus = modulusOf(2048);
    const flawed = modulus - (modulus % product) + power;
    if (flawed % 2n && flawed.toString(2).length === 2048 && !divisible(flawed)) return flawed;
  }
}

/** The result of an input. @throws Error with the input for every error that is not an ApiError */
export const codeOf = (input: string): ErrorCode | 'accepted' => {
  try {
    parseSshPublicKey(input);
    return 'accepted';
  } catch (error) {
    if (error instanceof ApiError) return error.code;
    throw new Error(`An error of our own for ${JSON.stringify(input)}`, { cause: error });
  }
};
export const detailOf = (input: string): string => {
  try {
    return `It was accepted as ${parseSshPublicKey(input).publicKey}`;
  } catch (error) {
    return (error as Error).message;
  }
};
