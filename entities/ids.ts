/** Public identifiers: a typed prefix and 26 time-ordered Crockford characters, or a short random order number. */
import { randomBytes } from 'node:crypto';

const CROCKFORD = '0123456789abcdefghjkmnpqrstvwxyz';

export type IdPrefix =
  | 'acct'
  | 'tok'
  | 'key'
  | 'cl'
  | 'msg'
  | 'case'
  | 'note'
  | 'sshkey'
  | 'srv'
  | 'top'
  | 'xfr'
  | 'evt'
  | 'aud'
  | 'task'
  | 'req'
  | 'login'
  | 'can'
  | 'inc'
  | 'agt'
  | 'chg'
  | 'whk'
  | 'dlv'
  | 'pay'
  | 'out'
  | 'mov'
  | 'pool'
  | 'fnd'
  | 'dep'
  | 'job'
  | 'opr'
  | 'ops'
  | 'prop'
  | 'chl';

/** The tolerance of the bounds of ids. A transaction takes a while, and the database has another clock. */
const SPARE_MS = 10 * 60_000;

let lastMs = 0;
let entropy = new Uint8Array(10);

/**
 * Returns a new id. The ids of one process sort by creation, so an id also serves as a cursor. They follow a clock that goes
 * back further than the tolerance, because reads would not find ids so far ahead.
 */
export function newId(prefix: IdPrefix): string {
  const now = Date.now();
  const ms = now < lastMs - SPARE_MS ? now : Math.max(now, lastMs);
  if (ms === lastMs) increment();
  else entropy = tenRandomBytes();
  lastMs = ms;
  return `${prefix}_${timeOf(ms)}${base32(entropy)}`;
}

/** The last millisecond that ten characters hold. */
const MS_MAX = 32 ** 10 - 1;

/**
 * Returns the lower bound of the ids made at a time or later.
 * @param ms milliseconds since the epoch
 */
export const idFloor = (prefix: IdPrefix, ms: number): string =>
  `${prefix}_${timeOf(Math.min(Math.max(0, ms), MS_MAX))}`;

/**
 * Returns bounds of the ids of the rows from a time until another one. The bounds are wide, so a read also compares the
 * times of the rows.
 * @param since null: from the beginning
 * @param until exclusive; null: without an end
 */
export const idBounds = (prefix: IdPrefix, since: Date | null, until: Date | null): [from: string, below: string] => [
  idFloor(prefix, since ? since.getTime() - SPARE_MS : 0),
  idFloor(prefix, until ? until.getTime() + SPARE_MS : MS_MAX),
];

function timeOf(ms: number): string {
  let time = '';
  for (let rest = ms, i = 0; i < 10; i++, rest = Math.floor(rest / 32)) time = CROCKFORD[rest % 32] + time;
  return time;
}

let pool = Buffer.alloc(0);
let used = 0;

/** Takes random bytes from a page of them, because a call of the kernel doubles the cost of an id. */
function tenRandomBytes(): Uint8Array<ArrayBuffer> {
  if (used + 10 > pool.length) [pool, used] = [randomBytes(4096), 0];
  used += 10;
  return Uint8Array.from(pool.subarray(used - 10, used));
}

/** Adds one to the entropy, as ULID does within a millisecond. */
function increment() {
  for (let i = entropy.length - 1; i >= 0; i--) if (++entropy[i]! !== 256) return;
}

/** Encodes five bits a character, so 10 bytes become 16 characters. */
function base32(bytes: Uint8Array): string {
  let out = '';
  let value = 0;
  let bits = 0;
  for (const byte of bytes) {
    value = (value << 8) | byte;
    for (bits += 8; bits >= 5; bits -= 5) out += CROCKFORD[(value >> (bits - 5)) & 31];
    value &= 31;
  }
  return out;
}

/** Returns a random order number of 50 bits, which people can read aloud. The table ensures that it is unique. */
export function newOrderNumber(kind: 'SRV' | 'TOP'): string {
  return `${kind}-${randomText(10).toUpperCase()}`;
}

/** Returns random characters of Crockford's base32, with 5 bits each. */
export const randomText = (length: number): string =>
  Array.from(randomBytes(length), (byte) => CROCKFORD[byte % 32]).join('');

const idForms = new Map<IdPrefix, RegExp>();
const orderNumberForm = (kind: string) => new RegExp(`^${kind}-[0-9A-HJKMNP-TV-Z]{10}$`);
const orderNumberForms = { SRV: orderNumberForm('SRV'), TOP: orderNumberForm('TOP') };

/** Whether a text has the form of an id. Callers check this first and save a query. */
export function isId(prefix: IdPrefix, id: string): boolean {
  const form = idForms.get(prefix) ?? new RegExp(`^${prefix}_[0-9a-hjkmnp-tv-z]{26}$`);
  idForms.set(prefix, form);
  return form.test(id);
}

/** Whether a text has the form of an order number. */
export const isOrderNumber = (kind: 'SRV' | 'TOP', orderNumber: string): boolean =>
  orderNumberForms[kind].test(orderNumber);
