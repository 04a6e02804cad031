/**
 * The encryption of archives: age (age-encryption.org/v1), whose key follows from SECRET_KEY. So the key that the operator keeps
 * for the database opens its archives, too. age finds a file that was cut off, and parts that were changed or moved.
 */
import { ReadableStream } from 'node:stream/web';
import { bech32 } from '@scure/base';
import { Decrypter, Encrypter, identityToRecipient } from 'age-encryption';

/** Returns a key in the form of age. */
const identityOf = (secret: Uint8Array): string => bech32.encodeFromBytes('AGE-SECRET-KEY-', secret).toUpperCase();

/** The web has two types of the same stream. */
const webStream = (given: AsyncIterable<Uint8Array>) =>
  ReadableStream.from(given) as globalThis.ReadableStream<Uint8Array>;

/** Encrypts with the key of archives. */
export async function* sealed(key: Uint8Array, plain: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const encrypter = new Encrypter();
  encrypter.addRecipient(await identityToRecipient(identityOf(key)));
  yield* (await encrypter.encrypt(webStream(plain))) as ReadableStream<Uint8Array>;
}

/** No given key opens the archive. */
export class WrongKey extends Error {}

/** Decrypts with the key that fits. @throws WrongKey, or Error for a damaged archive */
export async function* opened(
  keys: readonly Uint8Array[],
  given: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const decrypter = new Decrypter();
  for (const secret of keys) decrypter.addIdentity(identityOf(secret));
  const plain = await decrypter.decrypt(webStream(given)).catch((error: Error) => {
    throw error.message.startsWith('no identity') ? new WrongKey() : error;
  });
  yield* plain as ReadableStream<Uint8Array>;
}
