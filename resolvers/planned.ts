/** What does not exist yet says so. */
import { ApiError } from '../entities/errors.ts';

/** @throws ApiError endpoint_planned */
export function planned(): never {
  throw new ApiError('endpoint_planned');
}
