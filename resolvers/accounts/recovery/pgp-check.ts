/** Checks a PGP key in a thread of its own, because a crafted key can take long. */
import { parentPort, workerData } from 'node:worker_threads';
import { type Key, PacketList, PublicKey, readKey, type Subkey } from 'openpgp';

/** A key that can encrypt, or the reason why it cannot serve. */
export type Checked =
  | { armored: string; fingerprint: string }
  | { fault: 'unreadable' | 'private' | 'costly' | 'slow' | 'weak' | 'useless' };

const [RSA_BITS_MAX, EXPONENT_BYTES_MAX] = [8192, 4];
const CURVES: ReadonlySet<string> = new Set([
  ...['curve25519Legacy', 'ed25519Legacy', 'nistP256', 'nistP384', 'nistP521'],
]);
/** The library may verify each, and a wrong one twice. */
const SIGNATURES_MAX = 32;
const OF_CURVE25519: ReadonlySet<string> = new Set(['ed25519', 'x25519']);

async function checked(text: string): Promise<Checked> {
  const key = await readKey({ armoredKey: text }).catch(() => undefined);
  if (!key) return { fault: 'unreadable' };
  if (key.isPrivate()) return { fault: 'private' };
  if (!key.getKeys().every(isCheap)) return { fault: 'costly' };
  if (signaturesOf(key).length > SIGNATURES_MAX) return { fault: 'slow' };
  try {
    const chosen = await key.getEncryptionKey();
    return { armored: leastOf(key, chosen).armor(), fingerprint: key.getFingerprint().toUpperCase() };
  } catch (error) {
    return { fault: /bit|curve|secure/i.test((error as Error).message) ? 'weak' : 'useless' };
  }
}

/** Whether a signature of the key is verified quickly. */
function isCheap({ keyPacket }: Key | Subkey): boolean {
  const { algorithm, bits, curve } = keyPacket.getAlgorithmInfo();
  if (bits === undefined) return OF_CURVE25519.has(algorithm) || CURVES.has(curve ?? '');
  const { e } = (keyPacket as unknown as { publicParams: { e?: Uint8Array } }).publicParams;
  return algorithm.startsWith('rsa') && bits <= RSA_BITS_MAX && e !== undefined && e.length <= EXPONENT_BYTES_MAX;
}

/** The library's types lack this member. */
const directOf = (key: Key) => (key as Key & { directSignatures: unknown[] }).directSignatures;
const signaturesOf = (key: Key): unknown[] => [
  ...directOf(key),
  ...key.revocationSignatures,
  ...key.users.flatMap((one) => [...one.selfCertifications, ...one.revocationSignatures]),
  ...key.subkeys.flatMap((one) => [...one.bindingSignatures, ...one.revocationSignatures]),
];

/** The primary key and the part that encrypts, without a user or a signature. So later uses of the key verify nothing. */
function leastOf(key: Key, { keyPacket }: Key | Subkey): PublicKey {
  const packets = new PacketList<Key['keyPacket'] | Subkey['keyPacket']>();
  packets.push(key.keyPacket);
  if (keyPacket !== key.keyPacket) packets.push(keyPacket);
  return new PublicKey(packets as never);
}

parentPort!.postMessage(await checked(workerData as string));
