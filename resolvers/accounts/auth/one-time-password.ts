/** Time-based one-time passwords (RFC 6238): SHA-1, six digits, steps of 30 seconds, one step of tolerance. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

export const DIGITS = 6;
export const PERIOD_SECONDS = 30;
/** The most steps between the two clocks, in either direction. */
const TOLERANCE = 1;
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** Returns the code of a step (RFC 4226, section 5.3). */
export function codeOf(seed: Buffer, step: number, digits = DIGITS): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const mac = createHmac('sha1', seed).update(counter).digest();
  const number = mac.readUInt32BE(mac[19]! & 15) & 0x7fffffff;
  return String(number % 10 ** digits).padStart(digits, '0');
}

export const stepAt = (ms: number): number => Math.floor(ms / 1000 / PERIOD_SECONDS);

/** Returns the step near now that has the code, or undefined. Compares all steps, so each takes the same time. */
export function stepOf(seed: Buffer, code: string, now = Date.now()): number | undefined {
  if (!/^\d{6}$/.test(code)) return undefined;
  let found: number | undefined;
  for (let step = stepAt(now) - TOLERANCE; step <= stepAt(now) + TOLERANCE; step++)
    if (timingSafeEqual(Buffer.from(codeOf(seed, step)), Buffer.from(code))) found = step;
  return found;
}

/** Returns a new seed of 160 bits, as RFC 4226 recommends, in base32 (RFC 4648). */
export const newSeed = (): string => {
  const bits = [...randomBytes(20)].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  return bits
    .match(/.{5}/g)!
    .map((five) => BASE32[Number.parseInt(five, 2)])
    .join('');
};

/** Decodes a seed from base32. */
export const seedBytes = (base32: string): Buffer => {
  const bits = [...base32].map((letter) => BASE32.indexOf(letter).toString(2).padStart(5, '0')).join('');
  return Buffer.from(bits.match(/.{8}/g)!.map((eight) => Number.parseInt(eight, 2)));
};
