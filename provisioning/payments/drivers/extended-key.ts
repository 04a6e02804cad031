/** An extended public key of an account (BIP 32). The drivers derive deposit addresses from it: 0/i, as in BIP 44. */
import { createHash } from 'node:crypto';
import { createBase58check } from '@scure/base';
import { HDKey } from '@scure/bip32';

const base58check = createBase58check((data) => createHash('sha256').update(data).digest());
/** The offset of the key, after version, depth, fingerprint, number and chain code. */
const KEY_AT = 45;
/** The bytes of an extended key. */
const LENGTH = 78;

export class ExtendedKey {
  /** Identifies the key in any spelling. Its deposit addresses share one sequence of numbers. */
  readonly source: string;
  readonly #receiving: HDKey;

  /**
   * @param versions the allowed first bytes: 0488b21e is xpub. @throws Error that names the fault, without the key
   */
  constructor(text: string, versions: readonly number[]) {
    const bytes = decodeBase58(text);
    if (bytes?.length !== LENGTH) throw new Error('xpub is not an extended public key');
    if (bytes[KEY_AT] === 0)
      throw new Error('xpub is a PRIVATE key: replace it by the extended public key of the account');
    const version = Buffer.from(bytes).readUInt32BE();
    if (!versions.includes(version))
      throw new Error(`xpub begins with ${text.slice(0, 4)}, which is for another chain or another kind of address`);
    const account = HDKey.fromExtendedKey(text, { public: version, private: 0 });
    this.source = `xpub:${createHash('sha256').update(bytes.subarray(13)).digest('hex').slice(0, 32)}`;
    this.#receiving = account.deriveChild(0);
  }

  /** The compressed public key of a deposit. */
  publicKey(deposit: number): Uint8Array {
    return this.#receiving.deriveChild(deposit).publicKey!;
  }
}

/** RIPEMD-160 of SHA-256, as in Bitcoin's addresses. */
export const hash160 = (key: Uint8Array): Uint8Array =>
  createHash('ripemd160').update(createHash('sha256').update(key).digest()).digest();
/** Base58 with the checksum of Bitcoin. */
export const encodeBase58 = (version: number, hash: Uint8Array): string =>
  base58check.encode(Uint8Array.from([version, ...hash]));
/** The bytes of such a text, without its checksum; undefined: it is none. */
export function decodeBase58(text: string): Uint8Array | undefined {
  try {
    return base58check.decode(text);
  } catch {
    return undefined;
  }
}
