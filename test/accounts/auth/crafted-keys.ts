/** PGP keys that somebody has crafted: slow, forged or useless ones (RFC 9580). */
import { createHash } from 'node:crypto';
import { armor, config, enums, generateKey, PacketList, PublicKey, SignaturePacket } from 'openpgp';

const u16 = (n: number) => Buffer.from([n >> 8, n & 255]);
const u32 = (n: number) => Buffer.from([n >>> 24, (n >> 16) & 255, (n >> 8) & 255, n & 255]);
const number = (bytes: Buffer) => Buffer.concat([u16(bytes.length * 8), bytes]);
const packet = (tag: number, body: Buffer) => Buffer.concat([Buffer.from([0xc0 | tag, 0xff]), u32(body.length), body]);
const part = (type: number, data: Buffer) => Buffer.concat([Buffer.from([data.length + 1, type]), data]);

/** An RSA "public key" with a huge exponent and a wrong signature. @param modulusBytes the length of n. @param exponentBytes the length of e */
export function slowKey(modulusBytes: number, exponentBytes: number): string {
  const at = u32(1_700_000_000);
  const numbers = [number(Buffer.alloc(modulusBytes, 0xa5)), number(Buffer.alloc(exponentBytes, 0xff))];
  const key = Buffer.concat([Buffer.from([4]), at, Buffer.from([1]), ...numbers]);
  const id = createHash('sha1')
    .update(Buffer.from([0x99]))
    .update(u16(key.length))
    .update(key)
    .digest()
    .subarray(12);
  const hashed = Buffer.concat([part(2, at), part(27, Buffer.from([0x0f]))]);
  const head = Buffer.concat([Buffer.from([4, 0x13, 1, 11]), u16(hashed.length), hashed]);
  const issuer = part(16, id);
  const signature = Buffer.concat([head, u16(issuer.length), issuer, u16(0), number(Buffer.from([0x83]))]);
  const all = Buffer.concat([packet(6, key), packet(13, Buffer.from('a')), packet(2, signature)]);
  const lines = all
    .toString('base64')
    .match(/.{1,76}/g)!
    .join('\n');
  return `-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n${lines}\n-----END PGP PUBLIC KEY BLOCK-----\n`;
}

/** A key with so many more signatures of its subkey, all wrong. */
export async function forgedKey(type: 'curve25519' | 'curve448', signatures: number): Promise<string> {
  const { publicKey } = await generateKey({ type, userIDs: [{ name: 'forger' }], format: 'object' });
  const packets = publicKey.toPacketList();
  const bytes = packets.at(-1)!.write();
  const forged = Array.from({ length: signatures }, (_, i) => {
    const wrong = Uint8Array.from(bytes);
    wrong[bytes.length - 1] = bytes.at(-1)! ^ (i + 1);
    const signature = new SignaturePacket();
    (signature as unknown as { read(bytes: Uint8Array): void }).read(wrong);
    return signature;
  });
  const all = new PacketList<(typeof packets)[number]>();
  all.push(...packets, ...forged);
  return new PublicKey(all).armor();
}

/** A key that binds a subkey whose number encrypts nothing: the point zero of Curve25519. */
export async function uselessKey(): Promise<string> {
  const { privateKey } = await generateKey({ type: 'curve25519', userIDs: [{ name: 'useless' }], format: 'object' });
  const key = privateKey.toPublic();
  const part = key.subkeys[0]!;
  // The types of the library lack these members.
  // biome-ignore lint/suspicious/noExplicitAny: see above
  const packet = part.keyPacket as any;
  packet.publicParams.A = new Uint8Array(32);
  packet.fingerprint = null;
  await packet.computeFingerprintAndKeyID();
  // biome-ignore lint/suspicious/noExplicitAny: see above
  const binding = new SignaturePacket() as any;
  const { algorithm } = privateKey.keyPacket;
  Object.assign(binding, { signatureType: enums.signature.subkeyBinding, publicKeyAlgorithm: algorithm, version: 4 });
  Object.assign(binding, { hashAlgorithm: enums.hash.sha512, keyFlags: [12] });
  const signed = { key: key.keyPacket, bind: packet };
  await binding.sign(privateKey.keyPacket, signed, new Date(Date.now() - 1000), false, config);
  part.bindingSignatures = [binding];
  return key.armor();
}

/** A usual key, with so many empty packets behind it. */
export async function longKey(packets: number): Promise<string> {
  const { publicKey } = await generateKey({ type: 'curve25519', userIDs: [{ name: 'a' }], format: 'object' });
  const empty = Buffer.concat(Array.from({ length: packets }, () => Buffer.from([0xc0 | 40, 0])));
  return armor(enums.armor.publicKey, Buffer.concat([publicKey.write(), empty])) as string;
}
