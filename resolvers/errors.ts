/** The errors that resolvers share. */
import { isDatabaseAway } from '../entities/database/transaction.ts';
import { ApiError } from '../entities/errors.ts';

const RETRY_SECONDS = 1;

export const unavailable = (): ApiError => new ApiError('unavailable', undefined, { retryAfter: RETRY_SECONDS });

/** Returns `unavailable` while the database is away, else `internal_error`. */
export const faultOf = (thrown: unknown): ApiError =>
  isDatabaseAway(thrown) ? unavailable() : new ApiError('internal_error');

/** Returns `validation_failed` for one field. */
export const invalid = (field: string, message: string): ApiError =>
  new ApiError('validation_failed', message, { errors: [{ field, code: 'not_possible', message }] });

/** Returns what the caller asked for. @throws ApiError not_found, with the detail, if there is no such thing */
export function found<T>(thing: T | undefined | null | false, detail?: string): T {
  if (thing === undefined || thing === null || thing === false) throw new ApiError('not_found', detail);
  return thing;
}
