/**
 * The strict parser of one OpenSSH public key line, such as the content of `id_ed25519.pub`. The parser accepts only
 * keys that sshd can use, each in one spelling. So equal keys have equal fingerprints, and only one key reaches
 * `authorized_keys`. No error repeats the input, because it may be a private key.
 */
import { createHash, ECDH } from 'node:crypto';
import { ApiError, ERRORS, type ErrorCode } from '../errors.ts';

const CHARACTERS_MAX = 16_384;
const COMMENT_CHARACTERS_MAX = 120;
const RSA_BITS_MIN = 2048;
const RSA_BITS_MAX = 8192;

interface SshPublicKey {
  type: string;
  bits: number;
  /** `SHA256:` and base64 without padding, as ssh-keygen prints it. */
  fingerprint: string;
  /** Canonical `type base64`, without comment. */
  publicKey: string;
  /** Printable, at most 120 characters, often empty. */
  comment: string;
}

const refused = (code: ErrorCode, detail: string = ERRORS[code][1]) =>
  new ApiError(code, detail, { errors: [{ field: 'public_key', code, message: detail }] });
const invalid = (detail: string) => refused('invalid_public_key', detail);
const tooWeak = (detail: string) => refused('key_too_weak', detail);

/** The armour of PEM, PKCS #8, OpenSSH and ssh.com keys, the header of PuTTY, and OpenSSH data without armour. */
const PRIVATE_KEY = /PRIVATE\s*KEY|PuTTY-User-Key-File|Private-Lines|b3BlbnNzaC1rZXktdjE/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression finds them
const CONTROL_CHARACTER = /[\x00-\x08\x0a-\x1f\x7f]/;

/** @throws ApiError invalid_public_key, key_too_weak, or private_key_rejected */
export function parseSshPublicKey(input: string): SshPublicKey {
  if (PRIVATE_KEY.test(visible(input))) throw refused('private_key_rejected');
  if (input.length > CHARACTERS_MAX) throw invalid(`A public key has at most ${CHARACTERS_MAX} characters.`);
  const line = input.trim();
  if (CONTROL_CHARACTER.test(line)) throw invalid('Send exactly one key, in one line without control characters.');
  const [, type = '', base64 = '', comment = ''] = /^([^ \t]+)[ \t]+([^ \t]+)[ \t]*(.*)$/su.exec(line) ?? [];
  const readKey = keyReaderOf(type);
  const blob = Buffer.from(base64, 'base64');
  if (blob.toString('base64') !== base64) throw invalid('The second word of the line is not canonical base64.');
  const fields = new Fields(blob);
  if (fields.text() !== type) throw invalid('The type in the key data differs from the type at the start of the line.');
  const bits = readKey(fields);
  fields.end();
  const fingerprint = `SHA256:${createHash('sha256').update(blob).digest('base64').replace(/=+$/, '')}`;
  return { type, bits, fingerprint, publicKey: `${type} ${base64}`, comment: printable(comment) };
}

/** Removes control characters, and characters that change the direction of writing. */
const visible = (text: string) => text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '');
const printable = (comment: string) => Array.from(visible(comment)).slice(0, COMMENT_CHARACTERS_MAX).join('').trim();

/** Reads and checks the fields of one type of key, and returns its size in bits. */
type KeyReader = (fields: Fields) => number;

const KEY_READERS = new Map<string, KeyReader>([
  ['ssh-ed25519', readEd25519],
  ['sk-ssh-ed25519@openssh.com', (fields) => withApplication(fields, readEd25519)],
  ['ecdsa-sha2-nistp256', (fields) => readEcdsa(fields, 'nistp256')],
  ['ecdsa-sha2-nistp384', (fields) => readEcdsa(fields, 'nistp384')],
  ['ecdsa-sha2-nistp521', (fields) => readEcdsa(fields, 'nistp521')],
  ['sk-ecdsa-sha2-nistp256@openssh.com', (fields) => withApplication(fields, () => readEcdsa(fields, 'nistp256'))],
  ['ssh-rsa', readRsa],
]);

function keyReaderOf(type: string): KeyReader {
  const reader = KEY_READERS.get(type);
  if (reader) return reader;
  if (type === 'ssh-dss') throw tooWeak('DSA keys are too weak. Create an ed25519 key.');
  if (type.includes('-cert-')) throw invalid('This is a certificate. Send the public key instead.');
  throw invalid(
    `Send one line "type base64 comment" without options before it. The type is one of ${[...KEY_READERS.keys()].join(', ')}.`,
  );
}

/** The fields of the key data: each has four bytes for its length, and then its bytes. */
class Fields {
  readonly #blob: Buffer;
  #at = 0;
  constructor(blob: Buffer) {
    this.#blob = blob;
  }
  bytes(): Buffer {
    const from = this.#at + 4;
    const to = from <= this.#blob.length ? from + this.#blob.readUInt32BE(this.#at) : Infinity;
    if (to > this.#blob.length) throw invalid('The key data end too early. Copy the whole line.');
    this.#at = to;
    return this.#blob.subarray(from, to);
  }
  text(): string {
    return this.bytes().toString('latin1');
  }
  /** Reads a positive number in its shortest form: without a sign bit or leading zeros. */
  natural(): bigint {
    const bytes = this.bytes();
    const [first = 0x80, second = 0] = bytes;
    if (first & 0x80 || (first === 0 && !(second & 0x80))) throw invalid('The key data have a malformed number.');
    return BigInt(`0x${bytes.toString('hex')}`);
  }
  end() {
    if (this.#at !== this.#blob.length) throw invalid('The key data continue after the end of the key.');
  }
}

/** The most characters of an application. Each server keeps its keys, so a long one would cost the service much. */
const APPLICATION_MAX = 64;

/** Reads the key of a security token, which ends with the name of its application. */
function withApplication(fields: Fields, read: KeyReader): number {
  const bits = read(fields);
  const application = fields.text();
  if (!/^ssh:[\x20-\x7e]*$/.test(application)) throw invalid('The security token did not make this key for SSH.');
  if (application.length > APPLICATION_MAX)
    throw invalid(`The application of the security token has more than ${APPLICATION_MAX} characters.`);
  return bits;
}

/** The field and the coefficient of the curve -x² + y² = 1 + d·x²·y² (RFC 8032). */
const P = 2n ** 255n - 19n;
const D = 37095705934669439343138083508754565189542113879843219016388785533085940283555n;

function readEd25519(fields: Fields): number {
  const bytes = fields.bytes();
  if (bytes.length !== 32) throw invalid('An ed25519 key has 32 bytes.');
  // Little-endian; the highest bit is the sign of x.
  const y = BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`) & (2n ** 255n - 1n);
  const y2 = (y * y) % P;
  if (y >= P || hasLowOrder(y2) || !isOnCurve(y2)) throw invalid('The ed25519 key is not a usable point of its curve.');
  return 256;
}

/** Points of order 1 and 2 have y² = 1. Points of order 4 have y = 0, and doubled points of order 8 do too. */
const hasLowOrder = (y2: bigint) => y2 === 0n || y2 === 1n || (D * y2 * y2 + 2n * y2 - 1n) % P === 0n;

/** Whether x² = (y² - 1) / (d·y² + 1) has a root. The product has a root exactly when the quotient has one. */
const isOnCurve = (y2: bigint) => power((y2 - 1n) * (D * y2 + 1n), (P - 1n) / 2n) === 1n;

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  for (let square = base % P, rest = exponent; rest > 0n; rest >>= 1n, square = (square * square) % P)
    if (rest & 1n) result = (result * square) % P;
  return result;
}

const CURVES = {
  nistp256: { name: 'prime256v1', bits: 256 },
  nistp384: { name: 'secp384r1', bits: 384 },
  nistp521: { name: 'secp521r1', bits: 521 },
} as const;

function readEcdsa(fields: Fields, curve: keyof typeof CURVES): number {
  const { name, bits } = CURVES[curve];
  if (fields.text() !== curve) throw invalid('The curve in the key data differs from the curve of the key type.');
  const point = fields.bytes();
  const uncompressed = point.length === 1 + 2 * Math.ceil(bits / 8) && point[0] === 4;
  if (!uncompressed || !isPointOf(name, point)) throw invalid('The ECDSA key is not a point of its curve.');
  return bits;
}

function isPointOf(curve: string, point: Buffer): boolean {
  try {
    ECDH.convertKey(point, curve);
    return true;
  } catch {
    return false;
  }
}

const SMALL_PRIMES = Array.from({ length: 750 }, (_, i) => i + 2)
  .filter((n, _, all) => all.every((divisor) => divisor >= n || n % divisor !== 0))
  .map(BigInt);

function readRsa(fields: Fields): number {
  const exponent = fields.natural();
  const modulus = fields.natural();
  const bits = modulus.toString(2).length;
  if (bits < RSA_BITS_MIN) throw tooWeak(`An RSA key needs at least ${RSA_BITS_MIN} bits; this one has ${bits}.`);
  if (bits > RSA_BITS_MAX) throw invalid(`An RSA key may have at most ${RSA_BITS_MAX} bits; this one has ${bits}.`);
  if (exponent < 3n || exponent % 2n === 0n || exponent >= 2n ** 64n)
    throw invalid('The RSA key has an unusable exponent.');
  if (SMALL_PRIMES.some((prime) => modulus % prime === 0n))
    throw invalid('The modulus of the RSA key has a small factor.');
  if (hasRoca(modulus)) throw tooWeak('An attacker can factor this RSA key (ROCA, CVE-2017-15361). Create a new key.');
  return bits;
}

const ROCA_RESIDUES = [11n, 13n, 17n, 19n, 37n, 53n, 61n, 71n, 73n, 79n, 97n, 103n, 107n, 109n, 127n, 151n, 157n].map(
  (prime) => {
    const powers = new Set<bigint>();
    for (let power = 1n; !powers.has(power); power = (power * 65537n) % prime) powers.add(power);
    return [prime, powers] as const;
  },
);

/** A flawed chip library made primes that are powers of 65537 modulo small primes. Their products are too. */
const hasRoca = (modulus: bigint) => ROCA_RESIDUES.every(([prime, powers]) => powers.has(modulus % prime));
