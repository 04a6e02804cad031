/** Secrets: credentials with a prefix and a checksum, their digests, and encryption at rest. */
import { createCipheriv, createDecipheriv, createHmac, hash, hkdfSync, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** `live` API key, `at` access token, `rt` refresh token, `lt` pending login, `cs` OAuth client secret, `op` operator token. */
export type CredentialKind = 'live' | 'at' | 'rt' | 'lt' | 'cs' | 'op';
const CREDENTIAL = /^svc_(live|at|rt|lt|cs|op)_[0-9A-Za-z]{38}$/;

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

/**
 * Seals values at rest (AES-256-GCM). The context (table, column and row) is authenticated, so a sealed value cannot
 * move to another row.
 */
export class Vault {
  readonly #key: Buffer;
  readonly #macKey: Buffer;
  /** @param key 32 bytes */
  constructor(key: Buffer) {
    if (key.length !== 32) throw new Error('The sealing key must have 32 bytes.');
    this.#key = key;
    this.#macKey = Buffer.from(hkdfSync('sha256', key, '', 'freehold digest', 32));
  }
  /** Returns another secret of 32 bytes for one purpose (HKDF, RFC 5869). */
  derive(purpose: string): Buffer {
    return Buffer.from(hkdfSync('sha256', this.#key, '', purpose, 32));
  }
  seal(plaintext: string, context: string): Buffer {
    const iv = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', this.#key, iv).setAAD(Buffer.from(context));
    return Buffer.concat([iv, cipher.update(plaintext, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  }
  /** Returns the HMAC of a short secret: without the key, an attacker cannot try all values. */
  keyedDigest(secret: string, context: string): Buffer {
    return createHmac('sha256', this.#macKey).update(`${context}\0${secret}`).digest();
  }
  /** @throws Error if the value was changed, was moved, or has another key */
  open(sealed: Buffer, context: string): string {
    const decipher = createDecipheriv('aes-256-gcm', this.#key, sealed.subarray(0, 12), { authTagLength: 16 });
    decipher.setAAD(Buffer.from(context)).setAuthTag(sealed.subarray(-16));
    return Buffer.concat([decipher.update(sealed.subarray(12, -16)), decipher.final()]).toString('utf8');
  }
}
