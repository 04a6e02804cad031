/** PGP keys of accounts: the reading of a new one, and challenges that only its owner can read. */
import { randomBytes } from 'node:crypto';
import type { Key, SignaturePacket, Subkey } from 'openpgp';
import { ApiError } from '../../../entities/errors.ts';

/** The library is large, so that only its first use loads it. */
const library = () => import('openpgp');

/** A public key that can encrypt. */
export interface PgpKey {
  /** The primary key and the part that encrypts, without users and signatures. */
  armored: string;
  /** 40 hex digits or more, upper case. */
  fingerprint: string;
}

type Code = 'invalid_public_key' | 'private_key_rejected' | 'key_too_weak';
function refusal(code: Code, words: string): ApiError {
  const message = `pgp_public_key ${words}`;
  return new ApiError(code, message, { errors: [{ field: 'pgp_public_key', code, message }] });
}
const PRIVATE = 'is a private key. Send the output of gpg --armor --export, and replace this key.';

/** Reads an armored public key. @throws ApiError invalid_public_key, private_key_rejected or key_too_weak */
export async function readPgpKey(text: string): Promise<PgpKey> {
  if (text.includes('PRIVATE KEY')) throw refusal('private_key_rejected', PRIVATE);
  const { readKey, PacketList, PublicKey } = await library();
  const binaryKey = await bytesOf(text);
  const key = binaryKey && (await readKey({ binaryKey }).catch(() => undefined));
  if (!key) throw refusal('invalid_public_key', 'is no armored PGP key. Send the output of gpg --armor --export.');
  if (key.isPrivate()) throw refusal('private_key_rejected', PRIVATE);
  if (!key.getKeys().every(isCheap))
    throw refusal('invalid_public_key', 'is neither RSA of 8192 bits at most, nor of Curve25519 or a NIST curve.');
  if (!key.getKeys().every(isStrong)) throw refusal('key_too_weak', 'is too weak to encrypt. Use 2048 bits or more.');
  const part = await encryptingPart(key);
  if (!part) throw useless();
  const packets = new PacketList<Key['keyPacket'] | Subkey['keyPacket']>();
  packets.push(key.keyPacket);
  if (part !== key) packets.push(part.keyPacket);
  const armored = new PublicKey(packets as never).armor();
  // The numbers of a key may make no sense, such as a point beside its curve.
  await encryptTo(armored, 'a try').catch(() => {
    throw useless();
  });
  return { armored, fingerprint: key.getFingerprint().toUpperCase() };
}

/** The library takes as long for a packet of two bytes as for a usual one. */
const PACKETS_MAX = 100;
/** The bytes of an armored key. Undefined: it has none, or no list of few packets (RFC 9580, section 4.2). */
async function bytesOf(text: string): Promise<Uint8Array | undefined> {
  const { unarmor } = await library();
  const armor = await unarmor(text).catch(() => undefined);
  if (!(armor?.data instanceof Uint8Array)) return undefined;
  let rest = Buffer.from(armor.data);
  for (let packets = 0; rest.length; packets++) {
    const length = lengthOf(rest);
    if (length === undefined || packets >= PACKETS_MAX) return undefined;
    rest = rest.subarray(length);
  }
  return armor.data;
}
/** The length of the first packet with its header. Undefined: the header tells no length. */
function lengthOf(packets: Buffer): number | undefined {
  const [head = 0, first = 0, second = 0] = packets;
  const long = (at: number) => (packets.length < at + 4 ? undefined : at + 4 + packets.readUInt32BE(at));
  if (!(head & 0x40)) return [2 + first, 3 + first * 256 + second, long(1), undefined][head & 3];
  if (first < 192) return 2 + first;
  if (first < 224) return 3 + (first - 192) * 256 + second + 192;
  return first === 255 ? long(2) : undefined;
}

const useless = () =>
  refusal(
    'invalid_public_key',
    'cannot encrypt: it has expired, is revoked, or has no key for encryption. Send the output of gpg --armor --export.',
  );

const [RSA_BITS_MIN, RSA_BITS_MAX, EXPONENT_BYTES_MAX] = [2048, 8192, 4];
const CURVES: ReadonlySet<string> = new Set([
  ...['curve25519Legacy', 'ed25519Legacy', 'nistP256', 'nistP384', 'nistP521'],
]);
const OF_CURVE25519: ReadonlySet<string> = new Set(['ed25519', 'x25519']);

/** Whether the runtime computes quickly with the key. */
function isCheap({ keyPacket }: Key | Subkey): boolean {
  const { algorithm, bits, curve } = keyPacket.getAlgorithmInfo();
  if (bits === undefined) return OF_CURVE25519.has(algorithm) || CURVES.has(curve ?? '');
  const { e } = (keyPacket as unknown as { publicParams: { e?: Uint8Array } }).publicParams;
  return algorithm.startsWith('rsa') && bits <= RSA_BITS_MAX && e !== undefined && e.length <= EXPONENT_BYTES_MAX;
}
const isStrong = ({ keyPacket }: Key | Subkey): boolean =>
  (keyPacket.getAlgorithmInfo().bits ?? RSA_BITS_MIN) >= RSA_BITS_MIN;

/**
 * A crafted key can have many wrong signatures, each of which takes 10 ms. So the service verifies few of them, and only those
 * that bind a part for encryption. The owner sends the key, so the other statements need no proof.
 */
const VERIFIED_MAX = 3;

/** The newest part of a key that encrypts: a bound subkey, or the primary key. Undefined: no part does. */
async function encryptingPart(key: Key): Promise<Key | Subkey | undefined> {
  const { enums } = await library();
  const primary = key.keyPacket;
  const certifications = key.users.flatMap((user) => user.selfCertifications);
  const own = newest(certifications);
  if (key.revocationSignatures.length || !isValid(primary, own)) return undefined;
  const bound = key.subkeys
    .filter(({ revocationSignatures }) => !revocationSignatures.length)
    .flatMap((part) => part.bindingSignatures.map((binding) => ({ part, binding })))
    .filter(({ part, binding }) => encrypts(part, binding) && isValid(part.keyPacket, binding))
    .toSorted((one, other) => Number(other.part.keyPacket.created) - Number(one.part.keyPacket.created))
    .slice(0, VERIFIED_MAX);
  for (const { part, binding } of bound) {
    const signed = { key: primary, bind: part.keyPacket };
    const isRight = await binding.verify(primary, enums.signature.subkeyBinding, signed).then(
      () => true,
      () => false,
    );
    if (isRight) return part;
  }
  return encrypts(key, own) ? key : undefined;
}

const newest = (signatures: SignaturePacket[]): SignaturePacket | undefined =>
  signatures.toSorted((one, other) => Number(other.created) - Number(one.created))[0];

/** Whether a part has not expired by its signature. */
function isValid({ created }: { created: Date }, signature: SignaturePacket | undefined): boolean {
  const seconds = signature?.keyNeverExpires ? undefined : signature?.keyExpirationTime;
  return !seconds || created.getTime() + seconds * 1000 > Date.now();
}

const ENCRYPTS = /^(rsa|ecdh|x25519)/;
/** The flags of a key that encrypts communication or storage (RFC 9580, section 5.2.3.29). */
const FOR_ENCRYPTION = 0x04 | 0x08;
/** Whether the part encrypts, by its algorithm and the flags of its signature. */
function encrypts({ keyPacket }: Key | Subkey, signature: SignaturePacket | undefined): boolean {
  const flags = signature?.keyFlags?.[0];
  return ENCRYPTS.test(keyPacket.getAlgorithmInfo().algorithm) && Boolean(flags && flags & FOR_ENCRYPTION);
}

/** A key without an owner, so that an unknown email gets a challenge, too. It is of the type that GnuPG makes by default. */
let ownerless: Promise<Key> | undefined;
const ownerlessKey = () =>
  (ownerless ??= library()
    .then(({ generateKey }) =>
      generateKey({ type: 'ecc', curve: 'curve25519Legacy', userIDs: [{ name: 'ownerless' }], format: 'object' }),
    )
    .then(({ publicKey }) => publicKey));

/**
 * Encrypts a text to the armored key, or to the key without an owner (RFC 9580, section 5.1). It verifies no signature,
 * because the key was checked when the account got it. The message does not name its key.
 */
export async function encryptTo(armored: string | null, text: string): Promise<string> {
  const { createMessage, encrypt, enums, PublicKeyEncryptedSessionKeyPacket, readKey } = await library();
  const key = armored === null ? await ownerlessKey() : await readKey({ armoredKey: armored });
  const part = key.subkeys.findLast(({ keyPacket }) => ENCRYPTS.test(keyPacket.getAlgorithmInfo().algorithm)) ?? key;
  const sessionKey = { data: randomBytes(32), algorithm: 'aes256' } as const;
  const message = await encrypt({ message: await createMessage({ text }), sessionKey, format: 'object' });
  const recipient = (PublicKeyEncryptedSessionKeyPacket as unknown as SessionKeyPacket).fromObject({
    version: 3,
    encryptionKeyPacket: part.keyPacket,
    anonymousRecipient: true,
    sessionKey: sessionKey.data,
    sessionKeyAlgorithm: enums.symmetric.aes256,
  });
  await recipient.encrypt(part.keyPacket);
  message.packets.unshift(recipient as never);
  return message.armor();
}

/** The types of the library lack these members. */
interface SessionKeyPacket {
  fromObject(given: {
    version: 3;
    encryptionKeyPacket: object;
    anonymousRecipient: boolean;
    sessionKey: Uint8Array;
    sessionKeyAlgorithm: number;
  }): { encrypt(key: object): Promise<void> };
}
