/** Passwords: argon2id (the default of the library) with the parameters that OWASP recommends. */
import { availableParallelism } from 'node:os';
import { hash, verify } from '@node-rs/argon2';
import { dictionary } from '@zxcvbn-ts/language-common';
import { ApiError } from '../../../entities/errors.ts';

const PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };
/** The 10,000 most frequent passwords: the list is sorted by frequency. */
const COMMON: ReadonlySet<string> = new Set(
  (dictionary as Record<string, string[]>)['passwords-common']!.slice(0, 10_000),
);
/** The longest queue. A longer one would take minutes, so the service asks further callers to come back. */
const WAITING_MAX = 256;

/**
 * Limits the hashes that run at once. Hashes share the four threads of libuv with DNS look-ups and file reads.
 * Without a limit, logins would block those. One core stays free: with a hash on every core, other requests take ten
 * times as long (bench/logins.ts). With one free core, they take three times as long.
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
      throw new ApiError('rate_limited', 'The service is checking too many passwords at the moment.', {
        retryAfter: 2,
      });
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

/** Returns the hash of a password, in PHC form. */
export const hashPassword = (password: string): Promise<string> => slots.run(() => hash(password, PARAMETERS));

/** The hash for unknown accounts, so that a wrong email takes as long as a wrong password. */
let dummy: Promise<string> | undefined;

/** Computes the hash for unknown accounts before the first login needs it. */
export const prepareDummy = (): Promise<string> => (dummy ??= hashPassword('no account has this password'));

/** Whether a password matches a stored hash. Without a hash, the check takes as long and fails. */
export async function verifyPassword(stored: string | null | undefined, password: string): Promise<boolean> {
  const against = stored ?? (await prepareDummy());
  // A malformed stored hash throws, and matches no password.
  const matches = await slots.run(() => verify(against, password).catch(() => false));
  return matches && Boolean(stored);
}

/** @throws ApiError weak_password for a common password, and for the email itself */
export function refuseWeakPassword(password: string, email: string, field = 'password'): void {
  const lower = password.toLowerCase();
  if (lower === email || lower === email.split('@')[0] || COMMON.has(lower)) {
    throw new ApiError('weak_password', undefined, {
      errors: [{ field, code: 'weak_password', message: 'Choose a less common password, without your email.' }],
    });
  }
}
