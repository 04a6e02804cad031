/** Passwords: argon2id (the library's default) with the parameters that OWASP asks for, and never so many hashes at once that nothing else gets its turn. */
import { availableParallelism } from 'node:os';
import { hash, verify } from '@node-rs/argon2';
import { dictionary } from '@zxcvbn-ts/language-common';
import { ApiError } from '../../../entities/errors.ts';

const PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };
/** The 10,000 passwords that are tried first; the list is sorted by frequency. */
const COMMON: ReadonlySet<string> = new Set(
  (dictionary as Record<string, string[]>)['passwords-common']!.slice(0, 10_000),
);
/** Beyond this many waiting, a caller is asked to come back: a queue of minutes serves nobody. */
const WAITING_MAX = 256;

/**
 * Hashing runs in libuv's four threads; unbounded, logins would hold up every DNS look-up and file read of the
 * process. So there are slots, and a queue. One core is left to everybody else: with a hash on each, requests that need
 * none wait ten times as long as without logins (bench/logins.ts), and with one core less three times.
 */
class Slots {
  #free: number;
  readonly #waiting: (() => void)[] = [];
  constructor(free: number) {
    this.#free = free;
  }
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else if (this.#waiting.length >= WAITING_MAX) {
      throw new ApiError('rate_limited', 'Too many passwords are being checked at the moment.', { retryAfter: 2 });
    } else await new Promise<void>((resume) => this.#waiting.push(resume));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    }
  }
}
const SLOTS_MAX = 3;
const slots = new Slots(Math.max(1, Math.min(availableParallelism() - 1, SLOTS_MAX)));

/** In PHC form. */
export const hashPassword = (password: string): Promise<string> => slots.run(() => hash(password, PARAMETERS));

/** What is verified against when there is no such account, so that both answers take the same time. */
let dummy: Promise<string> | undefined;

/** Makes the dummy hash before the first stranger comes. */
export const prepareDummy = (): Promise<string> => (dummy ??= hashPassword('no account has this password'));

/** Whether the password is that of the hash; without a hash it takes as long and is false. */
export async function verifyPassword(stored: string | null | undefined, password: string): Promise<boolean> {
  const against = stored ?? (await prepareDummy());
  // A malformed stored hash throws, and is nobody's password.
  const matches = await slots.run(() => verify(against, password).catch(() => false));
  return matches && Boolean(stored);
}

/** @throws ApiError weak_password for what everybody tries first */
export function refuseWeakPassword(password: string, email: string, field = 'password'): void {
  const lower = password.toLowerCase();
  if (lower === email || lower === email.split('@')[0] || COMMON.has(lower)) {
    throw new ApiError('weak_password', undefined, {
      errors: [
        {
          field,
          code: 'weak_password',
          message: 'Choose a password that is not among those everybody tries first.',
        },
      ],
    });
  }
}
