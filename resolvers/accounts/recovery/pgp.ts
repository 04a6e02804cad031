/** PGP keys of accounts: the check of a new one, and challenges that only its owner can read. */
import type { Key, Subkey } from 'openpgp';
import { ApiError } from '../../../entities/errors.ts';

/** The library is large, so that only its first use loads it. */
const library = () => import('openpgp');

/** A public key that can encrypt. */
export interface PgpKey {
  armored: string;
  /** 40 hex digits or more, upper case. */
  fingerprint: string;
}

const FIELD = 'pgp_public_key';
const refusal = (code: 'invalid_public_key' | 'private_key_rejected' | 'key_too_weak', message: string) =>
  new ApiError(code, message, { errors: [{ field: FIELD, code, message }] });

/** Reads an armored public key. @throws ApiError invalid_public_key, private_key_rejected or key_too_weak */
export async function readPgpKey(text: string): Promise<PgpKey> {
  if (text.includes('PRIVATE KEY'))
    throw refusal(
      'private_key_rejected',
      'pgp_public_key is a private key. Send the output of gpg --armor --export, and replace this key.',
    );
  const { readKey } = await library();
  const key = await readKey({ armoredKey: text }).catch(() => {
    throw refusal(
      'invalid_public_key',
      'pgp_public_key is no armored PGP key. Send the output of gpg --armor --export.',
    );
  });
  if (key.isPrivate())
    throw refusal('private_key_rejected', 'pgp_public_key is a private key. Send only the public one.');
  if (!key.getKeys().every(isCheap) || signaturesOf(key).length > SIGNATURES_MAX)
    throw refusal(
      'invalid_public_key',
      'pgp_public_key is neither RSA of 8192 bits at most, nor of Curve25519 or a NIST curve. Or it has more than ' +
        `${SIGNATURES_MAX} signatures of its own: send the output of gpg --armor --export-options export-minimal --export.`,
    );
  const least = await leastOf(key).catch((error: Error) => {
    if (/bit|curve|secure/i.test(error.message))
      throw refusal('key_too_weak', 'pgp_public_key is too weak to encrypt. Use 2048 bits or more.');
    throw refusal(
      'invalid_public_key',
      'pgp_public_key cannot encrypt: it has expired, is revoked, or has no key for encryption.',
    );
  });
  return { armored: least.armor(), fingerprint: key.getFingerprint().toUpperCase() };
}

const [RSA_BITS_MAX, EXPONENT_BYTES_MAX] = [8192, 4];
/** The curves that the runtime itself computes. The library computes others in JavaScript, which takes many times as long. */
const CURVES: ReadonlySet<string> = new Set([
  ...['curve25519Legacy', 'ed25519Legacy', 'nistP256', 'nistP384', 'nistP521'],
]);
const OF_CURVE25519: ReadonlySet<string> = new Set(['ed25519', 'x25519']);
/** The library verifies each until it finds a valid one. */
const SIGNATURES_MAX = 32;

/** Whether the library verifies a signature of the key quickly. Other keys would keep the process busy for seconds. */
function isCheap({ keyPacket }: Key | Subkey): boolean {
  const { algorithm, bits, curve } = keyPacket.getAlgorithmInfo();
  if (bits === undefined) return OF_CURVE25519.has(algorithm) || CURVES.has(curve ?? '');
  const { e } = (keyPacket as unknown as { publicParams: { e?: Uint8Array } }).publicParams;
  return algorithm.startsWith('rsa') && bits <= RSA_BITS_MAX && e !== undefined && e.length <= EXPONENT_BYTES_MAX;
}

/** The library's types lack this member. */
const directOf = (key: Key) => (key as Key & { directSignatures: unknown[] }).directSignatures;
/** All signatures that the library may verify. */
const signaturesOf = (key: Key): unknown[] => [
  ...directOf(key),
  ...key.revocationSignatures,
  ...key.users.flatMap((one) => [...one.selfCertifications, ...one.revocationSignatures]),
  ...key.subkeys.flatMap((one) => [...one.bindingSignatures, ...one.revocationSignatures]),
];

/**
 * Returns the key with its primary user and its subkey for encryption alone, and one valid signature of each. Each challenge
 * reads and verifies the stored key. @throws Error if the key cannot encrypt
 */
async function leastOf(key: Key): Promise<Key> {
  const chosen = await key.getEncryptionKey();
  const { user, selfCertification } = await key.getPrimaryUser();
  user.selfCertifications = [selfCertification];
  user.otherCertifications = [];
  user.revocationSignatures = [];
  key.users = [user];
  key.revocationSignatures = [];
  key.subkeys = key.subkeys.filter((one) => one === chosen);
  for (const subkey of key.subkeys) await keepValidBinding(subkey);
  await key.getEncryptionKey();
  return key;
}

/** Leaves the latest signature that binds the subkey. @throws Error without a valid one */
async function keepValidBinding(subkey: Subkey): Promise<void> {
  const newestFirst = subkey.bindingSignatures.toSorted((one, other) => Number(other.created) - Number(one.created));
  subkey.revocationSignatures = [];
  for (const signature of newestFirst) {
    subkey.bindingSignatures = [signature];
    const isValid = await subkey.verify().then(
      () => true,
      () => false,
    );
    if (isValid) return;
  }
  throw new Error('No signature binds the subkey.');
}

/** A key without an owner, so that an unknown email gets a challenge, too. */
let ownerless: Promise<Key> | undefined;
const ownerlessKey = () =>
  (ownerless ??= library()
    .then(({ generateKey }) => generateKey({ type: 'curve25519', userIDs: [{ name: 'ownerless' }], format: 'object' }))
    .then(({ publicKey }) => publicKey));

/**
 * Encrypts a text to the armored key, or to the key without an owner. The message does not name its key, so strangers do not
 * learn which one it is.
 */
export async function encryptTo(armored: string | null, text: string): Promise<string> {
  const { createMessage, encrypt, readKey } = await library();
  const own = armored === null ? undefined : await readKey({ armoredKey: armored });
  // A key may have expired since the account got it. Then every answer is wrong.
  const usable = await own?.getEncryptionKey().then(
    () => own,
    () => undefined,
  );
  const message = await createMessage({ text });
  return encrypt({ message, encryptionKeys: usable ?? (await ownerlessKey()), wildcard: true, format: 'armored' });
}
