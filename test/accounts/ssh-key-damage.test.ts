import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { parseSshPublicKey } from '../../entities/accounts/ssh-public-key.ts';
import { say } from '../setup/say.ts';
import {
  codeOf,
  ecdsa,
  ed25519,
  fields,
  line,
  MODULUS,
  P256,
  P384,
  P521,
  point,
  rsa,
  SK_ECDSA,
  SK_ED25519,
} from './ssh-key-lines.ts';

const ROUNDS = 8_000;
const lines = [
  ed25519(),
  ...([256, 384, 521] as const).map((bits) => ecdsa(bits, point({ 256: P256, 384: P384, 521: P521 }[bits]))),
  SK_ED25519,
  SK_ECDSA,
  rsa(MODULUS),
];

const random = (below: number) => Math.floor(Math.random() * below);
const someLine = () => lines[random(lines.length)]!;

const replaced = (text: string, at: number, count: number, by: string) =>
  text.slice(0, at) + by + text.slice(at + count);
/** Damage to the key data in well-formed base64. */
const inData = (change: (blob: Buffer, at: number) => Uint8Array) => (text: string) => {
  const [type = '', base64 = ''] = text.split(' ');
  const blob = Buffer.from(base64, 'base64');
  return blob.length ? line(type, Buffer.from(change(blob, random(blob.length)))) : text;
};
const DAMAGE: ((text: string) => string)[] = [
  (text) => replaced(text, random(text.length), 1, String.fromCharCode(random(random(4) ? 128 : 65_536))),
  (text) => replaced(text, random(text.length), 1 + random(8), ''),
  (text) => replaced(text, random(text.length), 0, someLine().slice(random(40), 40 + random(200))),
  (text) => replaced(text, 0, text.indexOf(' '), someLine().split(' ')[0]!),
  (text) => text.slice(0, random(text.length)) + someLine().slice(random(60)),
  (text) => `${text} ${randomBytes(20).toString('utf8')}`,
  inData((blob, at) => blob.with(at, blob[at]! ^ (1 << random(8)))),
  inData((blob, at) => blob.with(at % 60, random(256))),
  inData((blob, at) => blob.subarray(0, at)),
  inData((blob) => Buffer.concat([blob, fields(randomBytes(random(40)))])),
];

it('Random damage to keys causes only ApiErrors, and a second reading of accepted keys gives the same', () => {
  const outcomes: Record<string, number> = {};
  for (let round = 0; round < ROUNDS; round++) {
    let text = someLine();
    for (let times = 1 + random(3); times > 0; times--) text = DAMAGE[random(DAMAGE.length)]!(text);
    const outcome = codeOf(text);
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    if (outcome !== 'accepted') continue;
    const parsed = parseSshPublicKey(text);
    const again = parseSshPublicKey(`${parsed.publicKey} ${parsed.comment}`);
    if (JSON.stringify(again) !== JSON.stringify(parsed)) throw new Error(`Another key again: ${JSON.stringify(text)}`);
  }
  say(`Random damage to ${ROUNDS} keys: ${JSON.stringify(outcomes)}`);
  expect(outcomes.accepted).toBeGreaterThan(10);
  expect(outcomes.invalid_public_key).toBeGreaterThan(ROUNDS / 2);
});
