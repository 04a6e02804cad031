/** Passwords: argon2id (the default of the library) with the parameters that OWASP recommends. */
import { availableParallelism } from 'node:os';
import { ApiError } from '../../../entities/errors.ts';
import { siteOf } from '../../../entities/networks.ts';
import { Turns } from '../../../entities/turns.ts';

const PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };
/** The first password loads the library. */
const argon2 = () => import('@node-rs/argon2');
let common: Promise<ReadonlySet<string>> | undefined;
/** The 10,000 most frequent passwords (the list is sorted by frequency), and the name of this program. */
const commonPasswords = (): Promise<ReadonlySet<string>> =>
  (common ??= import('@zxcvbn-ts/language-common').then(
    ({ dictionary }) => new Set([...dictionary['passwords-common']!.slice(0, 10_000), 'freehold']),
  ));
/** Up to four digits or symbols, which people add to a common password. */
const ENDING = /\P{L}{1,4}$/u;
/** One to three characters again and again. */
const REPEATED = /^(.{1,3})\1+$/su;
/** The most checks that wait. More would take minutes, so the service asks further callers to come back. */
const WAITING_MAX = { waiting: 256, waitingOfGroup: 64 };

/**
 * Limits the hashes that run at once. Hashes share the four threads of libuv with DNS look-ups and file reads.
 * Without a limit, logins would block those. One core stays free: with a hash on every core, other requests take ten
 * times as long (bench/logins.ts). With one free core, they take three times as long.
 */
const PLACES_MAX = 3;
const turns = new Turns({
  places: Math.max(1, Math.min(availableParallelism() - 1, PLACES_MAX)),
  ...WAITING_MAX,
  refusal: 'The service is checking too many passwords at the moment.',
});
/** Waits for the turn of the caller's site. */
const atTurn = <T>(address: string | null, work: () => Promise<T>): Promise<T> =>
  turns.run(address ? siteOf(address) : '', work);

/** Returns the hash of a password, in PHC form. @throws ApiError rate_limited if too many checks wait */
export const hashPassword = (password: string, address: string | null = null): Promise<string> =>
  atTurn(address, async () => (await argon2()).hash(password, PARAMETERS));

/** A hash that no password matches, for unknown accounts. So a wrong email takes as long as a wrong password. */
const { memoryCost, timeCost, parallelism } = PARAMETERS;
const UNMATCHABLE_HASH = `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$${'A'.repeat(22)}$${'A'.repeat(43)}`;

/**
 * Whether a password matches a stored hash. Without a hash, the check takes as long and fails.
 * @throws ApiError rate_limited if too many checks wait
 */
export async function verifyPassword(
  stored: string | null | undefined,
  password: string,
  address: string | null,
): Promise<boolean> {
  // A malformed stored hash throws, and matches no password.
  const matches = await atTurn(address, async () =>
    (await argon2()).verify(stored ?? UNMATCHABLE_HASH, password).catch(() => false),
  );
  return matches && Boolean(stored);
}

/** @throws ApiError weak_password for a common password and for the email, each also with an ending, and for repeated characters */
export async function refuseWeakPassword(password: string, email: string, field = 'password'): Promise<void> {
  const lower = password.toLowerCase();
  const known = [email, email.split('@')[0]];
  const common = await commonPasswords();
  const isGuessed = [lower, lower.replace(ENDING, '')].some((guess) => known.includes(guess) || common.has(guess));
  if (isGuessed || REPEATED.test(lower)) {
    const message = 'Choose a less common password, without your email. Digits and symbols at its end do not help.';
    throw new ApiError('weak_password', undefined, { errors: [{ field, code: 'weak_password', message }] });
  }
}
