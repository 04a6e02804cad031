/**
 * The strict parser of one OpenSSH public key line, such as the content of `id_ed25519.pub`. What it accepts is a
 * key that sshd can use, in exactly one spelling; so equal keys have equal fingerprints, and nothing but one key
 * reaches `authorized_keys`. No error repeats any of the input: it may be a private key.
 */
import { createHash, ECDH } from 'node:crypto';
import { ApiError } from '../errors.ts';

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

const invalid = (detail: string) => new ApiError('invalid_public_key', detail);
const tooWeak = (detail: string) => new ApiError('key_too_weak', detail);

/** The armour of PEM, PKCS #8, OpenSSH and ssh.com keys, PuTTY's header, and OpenSSH's data without their armour. */
const PRIVATE_KEY = /PRIVATE\s*KEY|PuTTY-User-Key-File|Private-Lines|b3BlbnNzaC1rZXktdjE/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it looks for
const CONTROL_CHARACTER = /[\x00-\x08\x0a-\x1f\x7f]/;

/** @throws ApiError invalid_public_key, key_too_weak, or private_key_rejected */
export function parseSshPublicKey(input: string): SshPublicKey {
  if (PRIVATE_KEY.test(visible(input))) throw new ApiError('private_key_rejected');
  if (input.length > CHARACTERS_MAX) throw invalid(`A public key has at most ${CHARACTERS_MAX} characters.`);
  const line = input.trim();
  if (CONTROL_CHARACTER.test(line)) throw invalid('Send exactly one key, in one line without control characters.');
  const [, type = '', base64 = '', comment = ''] = /^([^ \t]+)[ \t]+([^ \t]+)[ \t]*(.*)$/su.exec(line) ?? [];
  const readKey = keyReaderOf(type);
  const blob = Buffer.from(base64, 'base64');
  if (blob.toString('base64') !== base64) throw invalid('The second word of the line is not canonical base64.');
  const fields = new Fields(blob);
  if (fields.text() !== type) throw invalid('The data of the key are of another type than the line says.');
  const bits = readKey(fields);
  fields.end();
  const fingerprint = `SHA256:${createHash('sha256').update(blob).digest('base64').replace(/=+$/, '')}`;
  return { type, bits, fingerprint, publicKey: `${type} ${base64}`, comment: printable(comment) };
}

/** Without control characters and those that turn the direction of writing. */
const visible = (text: string) => text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '');
const printable = (comment: string) => Array.from(visible(comment)).slice(0, COMMENT_CHARACTERS_MAX).join('').trim();

/** Reads the fields of one type of key, judges them, and returns the size of the key in bits. */
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
  if (type === 'ssh-dss') throw tooWeak('DSA keys are too weak. Make an ed25519 key.');
  if (type.includes('-cert-')) throw invalid('This is a certificate. Send the public key that it certifies.');
  throw invalid(
    `Send one line "type base64 comment" without options before it; the type is one of ${[...KEY_READERS.keys()].join(', ')}.`,
  );
}

/** The fields of a key's data: each is four bytes of length and then as many bytes. */
class Fields {
  readonly #blob: Buffer;
  #at = 0;
  constructor(blob: Buffer) {
    this.#blob = blob;
  }
  bytes(): Buffer {
    const from = this.#at + 4;
    const to = from <= this.#blob.length ? from + this.#blob.readUInt32BE(this.#at) : Infinity;
    if (to > this.#blob.length) throw invalid('The data of the key end too early. Copy the whole line.');
    this.#at = to;
    return this.#blob.subarray(from, to);
  }
  text(): string {
    return this.bytes().toString('latin1');
  }
  /** A positive number in the one spelling that is allowed: no sign bit, no needless zero before it. */
  natural(): bigint {
    const bytes = this.bytes();
    const [first = 0x80, second = 0] = bytes;
    if (first & 0x80 || (first === 0 && !(second & 0x80)))
      throw invalid('The data of the key have a malformed number.');
    return BigInt(`0x${bytes.toString('hex')}`);
  }
  end() {
    if (this.#at !== this.#blob.length) throw invalid('The data of the key go on after its end.');
  }
}

/** Keys of security tokens end with the application that they are for. */
function withApplication(fields: Fields, read: KeyReader): number {
  const bits = read(fields);
  if (!/^ssh:[\x20-\x7e]*$/.test(fields.text())) throw invalid('The key of the token was not made for SSH.');
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

/** The points of order 1 and 2 have y² = 1, of order 4 y = 0; twice a point of order 8 is one of order 4. */
const hasLowOrder = (y2: bigint) => y2 === 0n || y2 === 1n || (D * y2 * y2 + 2n * y2 - 1n) % P === 0n;

/** Whether x² = (y² - 1) / (d·y² + 1) has a root; dividing or multiplying makes no difference to that. */
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
  if (fields.text() !== curve) throw invalid('The data of the key name another curve than its type.');
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

const SMALL_PRIMES = Array.from({ length: 750 }, (_, i) => BigInt(i + 2)).filter((n, _, all) =>
  all.every((divisor) => divisor >= n || n % divisor !== 0n),
);

function readRsa(fields: Fields): number {
  const exponent = fields.natural();
  const modulus = fields.natural();
  const bits = modulus.toString(2).length;
  if (bits < RSA_BITS_MIN) throw tooWeak(`An RSA key needs at least ${RSA_BITS_MIN} bits; this one has ${bits}.`);
  if (bits > RSA_BITS_MAX) throw invalid(`An RSA key may have at most ${RSA_BITS_MAX} bits; this one has ${bits}.`);
  if (exponent < 3n || exponent % 2n === 0n || exponent >= 2n ** 64n) throw invalid('The RSA key has a bad exponent.');
  if (SMALL_PRIMES.some((prime) => modulus % prime === 0n))
    throw invalid('The modulus of the RSA key has a small factor.');
  if (hasRoca(modulus)) throw tooWeak('The RSA key can be factored (ROCA, CVE-2017-15361). Make a new key.');
  return bits;
}

const ROCA_RESIDUES = [11n, 13n, 17n, 19n, 37n, 53n, 61n, 71n, 73n, 79n, 97n, 103n, 107n, 109n, 127n, 151n, 157n].map(
  (prime) => {
    const powers = new Set<bigint>();
    for (let power = 1n; !powers.has(power); power = (power * 65537n) % prime) powers.add(power);
    return [prime, powers] as const;
  },
);

/** A chip's flawed library made primes that are powers of 65537 modulo small primes, and so are their products. */
const hasRoca = (modulus: bigint) => ROCA_RESIDUES.every(([prime, powers]) => powers.has(modulus % prime));
