/** The error that a caller sees for a fault of ours. It only tells whether to try again soon. */
import { isDatabaseAway } from '../entities/database/database.ts';
import { ApiError } from '../entities/errors.ts';

const RETRY_SECONDS = 1;

/** `unavailable` while the database is away, else `internal_error`. */
export const faultOf = (thrown: unknown): ApiError =>
  isDatabaseAway(thrown)
    ? new ApiError('unavailable', undefined, { retryAfter: RETRY_SECONDS })
    : new ApiError('internal_error');
