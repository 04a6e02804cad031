/** PGP keys of accounts: the check of a new one, and challenges that only its owner can read. */
import { randomBytes } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import type { Key } from 'openpgp';
import { ApiError } from '../../../entities/errors.ts';
import { unavailable } from '../../errors.ts';
import type { Checked } from './pgp-check.ts';

/** The library is large, so that only its first use loads it. */
const library = () => import('openpgp');

/** A public key that can encrypt. */
export interface PgpKey {
  /** The primary key and the part that encrypts, without users and signatures. */
  armored: string;
  /** 40 hex digits or more, upper case. */
  fingerprint: string;
}

const FIELD = 'pgp_public_key';
type Code = 'invalid_public_key' | 'private_key_rejected' | 'key_too_weak';
const refusal = (code: Code, message: string) =>
  new ApiError(code, message, { errors: [{ field: FIELD, code, message }] });

type Fault = Extract<Checked, { fault: string }>['fault'];
const REFUSALS: Readonly<Record<Fault, readonly [code: Code, message: string]>> = {
  unreadable: ['invalid_public_key', 'pgp_public_key is no armored PGP key. Send the output of gpg --armor --export.'],
  private: ['private_key_rejected', 'pgp_public_key is a private key. Send only the public one.'],
  costly: [
    'invalid_public_key',
    'pgp_public_key is neither RSA of 8192 bits at most, nor of Curve25519 or a NIST curve.',
  ],
  weak: ['key_too_weak', 'pgp_public_key is too weak to encrypt. Use 2048 bits or more.'],
  useless: [
    'invalid_public_key',
    'pgp_public_key cannot encrypt: it has expired, is revoked, or has no key for encryption.',
  ],
  slow: [
    'invalid_public_key',
    'pgp_public_key takes too long to check. Send the output of gpg --armor --export-options export-minimal --export.',
  ],
};

/** Reads an armored public key. @throws ApiError invalid_public_key, private_key_rejected, key_too_weak or unavailable */
export async function readPgpKey(text: string): Promise<PgpKey> {
  if (text.includes('PRIVATE KEY'))
    throw refusal(
      'private_key_rejected',
      'pgp_public_key is a private key. Send the output of gpg --armor --export, and replace this key.',
    );
  const checked = await inTurn(() => check(text));
  if ('fault' in checked) throw refusal(...REFUSALS[checked.fault]);
  return checked;
}

/** The start of the thread takes a second on a slow machine. */
const CHECK_MS_MAX = 3_000;
const WAITING_MAX = 8;
let waiting = 0;
let last: Promise<unknown> = Promise.resolve();

/** Checks one key at a time, so that many slow ones use one processor at most. @throws ApiError unavailable */
async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (waiting >= WAITING_MAX) throw unavailable();
  waiting++;
  const turn = last.then(work, work).finally(() => waiting--);
  last = turn.catch(() => undefined);
  return turn;
}

function check(text: string): Promise<Checked> {
  const thread = new Worker(new URL('./pgp-check.ts', import.meta.url), { workerData: text });
  return new Promise<Checked>((resolve, reject) => {
    const timer = setTimeout(() => resolve({ fault: 'slow' }), CHECK_MS_MAX);
    thread.once('message', resolve);
    thread.once('error', reject);
    thread.once('exit', () => clearTimeout(timer));
  }).finally(() => thread.terminate());
}

/** A key without an owner, so that an unknown email gets a challenge, too. */
let ownerless: Promise<Key> | undefined;
const ownerlessKey = () =>
  (ownerless ??= library()
    .then(({ generateKey }) => generateKey({ type: 'curve25519', userIDs: [{ name: 'ownerless' }], format: 'object' }))
    .then(({ publicKey }) => publicKey));

const ENCRYPTS = /^(rsa|ecdh|x25519)/;

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
