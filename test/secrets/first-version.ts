/** A database of the first versions. It lacks the migrations from 0013 on, and its values have no key id. */
import { createCipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { databaseBefore } from '../setup/migration.ts';

export const firstVersion = (onEnd: (end: () => Promise<void>) => void) => databaseBefore('0013', onEnd);

/** Seals as the first versions did. */
export function sealFirst(key: Buffer, plaintext: string, context: string): Buffer {
  const iv = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(context));
  return Buffer.concat([iv, cipher.update(plaintext, 'utf8'), cipher.final(), cipher.getAuthTag()]);
}

/** The digest of a recovery code as the first versions made it. */
export const firstDigest = (key: Buffer, accountId: string, code: string): Buffer =>
  createHmac('sha256', Buffer.from(hkdfSync('sha256', key, '', 'freehold digest', 32)))
    .update(`recovery_code:${accountId}\0${code}`)
    .digest();
