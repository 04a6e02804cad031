/** Login attempts for the tests of the throttle. */
import { ApiError } from '../../../entities/errors.ts';

export const wrong = async () => {
  throw new ApiError('invalid_login');
};
export const codeOf = (attempt: Promise<unknown>) =>
  attempt.then(
    () => 'ok',
    (error: ApiError) => error.code,
  );
