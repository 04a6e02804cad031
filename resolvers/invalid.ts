import { ApiError } from '../entities/errors.ts';

/** A refusal that names one field. */
export const invalid = (field: string, message: string): ApiError =>
  new ApiError('validation_failed', message, { errors: [{ field, code: 'not_possible', message }] });
