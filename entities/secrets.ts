/** Secrets: credentials with a prefix and a checksum, their digests, and encryption at rest. */
import { createCipheriv, createDecipheriv, hash, hkdfSync, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/**
 * `live` API key, `at` access token, `rt` refresh token, `lt` pending login, `cs` OAuth client secret. Of an operator: `op`
 * token, `os` session, `oi` invitation.
 */
export type CredentialKind = 'live' | 'at' | 'rt' | 'lt' | 'cs' | 'op' | 'os' | 'oi';
const CREDENTIAL = /^svc_(live|at|rt|lt|cs|op|os|oi)_[0-9A-Za-z]{38}$/;

function base62(value: number, length: number): string {
  let out = '';
  for (let rest = value; out.length < length; rest = Math.floor(rest / 62)) out = BASE62[rest % 62] + out;
  return out;
}

/** Returns random base62 characters without modulo bias. */
function random62(length: number): string {
  let out = '';
  while (out.length < length)
    for (const byte of randomBytes(length)) if (byte < 248 && out.length < length) out += BASE62[byte % 62];
  return out;
}

const checksum = (body: string) => base62(crc32(body), 6);

/** Returns a new credential: a prefix, 32 random base62 characters (190 bits), and the CRC-32 of both. */
export function mintCredential(kind: CredentialKind): string {
  const body = `svc_${kind}_${random62(32)}`;
  return body + checksum(body);
}

/** Returns the kind of a well-formed credential, or undefined. The checksum saves queries for most garbage. */
export function credentialKind(credential: string): CredentialKind | undefined {
  const kind = CREDENTIAL.exec(credential)?.[1] as CredentialKind | undefined;
  return kind && checksum(credential.slice(0, -6)) === credential.slice(-6) ? kind : undefined;
}

/** Returns the SHA-256 of a secret: the database holds only this. */
export const digest = (secret: string): Buffer => hash('sha256', secret, 'buffer');

/** Returns a password for a machine without an SSH key: 24 characters, 142 bits. */
export const newMachinePassword = (): string => random62(24);

/** The first byte of a sealed value. The id of its key follows. */
const FORMAT = 1;
const ID_BYTES = 8;
/** The length of the format and of the id. */
export const HEADER_BYTES = 1 + ID_BYTES;
const IV_BYTES = 12;

const derived = (key: Buffer | string, purpose: string, bytes = 32): Buffer =>
  Buffer.from(hkdfSync('sha256', key, '', purpose, bytes));

/** One key with its id, which reveals nothing of the key. */
interface SealingKey {
  id: Buffer;
  key: Buffer;
}

/** A value has the id of a key that the vault lacks. */
export class KeyMissing extends Error {}

/**
 * Seals values at rest (AES-256-GCM). The context (table, column and row) is authenticated, so a sealed value cannot
 * move to another row. Each value begins with the id of its key. The vault seals with its current key, and also opens
 * what a previous key has sealed.
 */
export class Vault {
  readonly #keys: readonly SealingKey[];
  /** The first bytes of all values that the current key has sealed. */
  readonly header: Buffer;
  /** @param keys 32 bytes each: the current one, then previous ones */
  constructor(...keys: [Buffer, ...Buffer[]]) {
    if (keys.some(({ length }) => length !== 32)) throw new Error('A sealing key must have 32 bytes.');
    this.#keys = keys.map((key) => ({ key, id: derived(key, 'freehold key id', ID_BYTES) }));
    this.header = Buffer.concat([Buffer.of(FORMAT), this.keyId]);
  }
  get #current(): SealingKey {
    return this.#keys[0]!;
  }
  /** The id of the current key. */
  get keyId(): Buffer {
    return this.#current.id;
  }
  /** The ids of all keys, that of the current one first. */
  get keyIds(): Buffer[] {
    return this.#keys.map(({ id }) => id);
  }
  /** Returns another secret of 32 bytes for one purpose (HKDF, RFC 5869). */
  derive(purpose: string): Buffer {
    return derived(this.#current.key, purpose);
  }
  /** Returns the secret of `derive`, then those of previous keys, which may have signed a text. */
  deriveAll(purpose: string): [Buffer, ...Buffer[]] {
    return this.#keys.map(({ key }) => derived(key, purpose)) as [Buffer, ...Buffer[]];
  }
  seal(plaintext: string, context: string): Buffer {
    return Buffer.concat([this.header, ...sealed(this.#current.key, plaintext, context)]);
  }
  /** @throws KeyMissing, or Error if the value was changed or moved */
  open(sealed: Buffer, context: string): string {
    const id = sealed.subarray(1, HEADER_BYTES);
    const found = sealed[0] === FORMAT ? this.#keys.find((one) => one.id.equals(id)) : undefined;
    if (!found) throw new KeyMissing(`No key opens ${context}. Name its key in SECRET_KEY_PREVIOUS.`);
    return opened(found.key, sealed.subarray(HEADER_BYTES), context);
  }
  /** Opens a value of the first versions, which begins with no id. @throws Error for another key */
  openFirst(sealed: Buffer, context: string): string {
    return opened(this.#current.key, sealed, context);
  }
  /**
   * Seals a value for a caller: inside with a secret that the service forgets, outside as `seal` does. So a new key can
   * replace the outer seal alone.
   */
  sealFor(secret: string, plaintext: string, context: string): Buffer {
    const inner = Buffer.concat(sealed(keyOf(secret), plaintext, context));
    return this.seal(inner.toString('base64'), context);
  }
  /** Opens a value of `sealFor`. @throws Error also for another secret */
  openFor(secret: string, sealed: Buffer, context: string): string {
    return opened(keyOf(secret), Buffer.from(this.open(sealed, context), 'base64'), context);
  }
}

const keyOf = (secret: string): Buffer => derived(secret, 'freehold caller');

function sealed(key: Buffer, plaintext: string, context: string): Buffer[] {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(context));
  return [iv, cipher.update(plaintext, 'utf8'), cipher.final(), cipher.getAuthTag()];
}

function opened(key: Buffer, sealed: Buffer, context: string): string {
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, IV_BYTES), { authTagLength: 16 });
  decipher.setAAD(Buffer.from(context)).setAuthTag(sealed.subarray(-16));
  return Buffer.concat([decipher.update(sealed.subarray(IV_BYTES, -16)), decipher.final()]).toString('utf8');
}
