/** The errors that resolvers share. */
import { isDatabaseAway } from '../entities/database/transaction.ts';
import { ApiError, ERRORS, type ErrorCode, refuse } from '../entities/errors.ts';

const RETRY_SECONDS = 1;

export const unavailable = (): ApiError => new ApiError('unavailable', undefined, { retryAfter: RETRY_SECONDS });

/** Returns `unavailable` while the database is away, else `internal_error`. */
export const faultOf = (thrown: unknown): ApiError =>
  isDatabaseAway(thrown) ? unavailable() : new ApiError('internal_error');

/** Returns `validation_failed` for one field. */
export const invalid = (field: string, message: string): ApiError => refuse(field, 'not_possible', message);

/** Returns the refusal of one thing more than the account may have. @param most its limit */
export const limitReached = (code: LimitCode, most: number): ApiError =>
  new ApiError(code, `${ERRORS[code][1]} The limit of this account is ${most}.`);
type LimitCode = Extract<ErrorCode, `${string}_limit_reached`>;

/** Returns what the caller asked for. @throws ApiError not_found, with the detail, if there is no such thing */
export function found<T>(thing: T | undefined | null | false, detail?: string): T {
  if (thing === undefined || thing === null || thing === false) throw new ApiError('not_found', detail);
  return thing;
}

/** ` Did you mean name?`, or an empty text without a name. */
export const suggestion = (name: string | undefined): string => (name === undefined ? '' : ` Did you mean ${name}?`);

/** A longer value is cut in an error. */
const SHOWN_MAX = 40;

/** A secret of this service, after the part that tells its kind. Callers put a key where its id belongs. */
const SECRET = /(svc_[a-z]+_|whsec_)[\w+/=-]+/gi;
/** The scheme of a URL, and its user with the password. */
const LOGIN = /^([a-z][a-z\d+.-]*:).*@/is;
/** The host of a URL, and the rest, which may have a token. */
const HOST = /:[/\\]{2}([^/\\?#]+)(.*)$/s;

/** A text of a caller without the secrets of this service. */
export const withoutSecrets = (text: string): string => text.replace(SECRET, '$1…');

/** The beginning of a value, as errors repeat it. It has no secret of this service, and only the host of a URL. */
export function shortened(value: string): string {
  const shown = withoutSecrets(value)
    .replace(LOGIN, '$1//')
    .replace(HOST, (_, host, more) => `://${host}${more.length > 1 ? '/…' : more}`);
  return shown.length > SHOWN_MAX ? `${shown.slice(0, SHOWN_MAX)}…` : shown;
}

/**
 * The candidate that begins with a word, or else has the fewest other letters. At last, one whose first part begins the word.
 * Undefined: none is similar.
 */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const sought = word.toLowerCase();
  const begun = candidates.find((candidate) => sought.length > 2 && candidate.toLowerCase().startsWith(sought));
  if (begun) return begun;
  let best: string | undefined;
  let least = Math.max(word.length > 4 ? 2 : 1, Math.floor(word.length * 0.4)) + 1;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - word.length) >= least) continue;
    const distance = levenshtein(sought, candidate.toLowerCase());
    if (distance < least) [best, least] = [candidate, distance];
  }
  return (
    best ??
    candidates.find((candidate) => /^\w{3,}(?=-)/.exec(candidate)?.[0] && sought.startsWith(candidate.split('-')[0]!))
  );
}

/** The number of inserted, deleted and changed letters between two words. */
function levenshtein(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length]!;
}
