/** The schema: the only door through which facades reach the domain. */
import './scalars.ts';
import './catalog.ts';
import { builder } from './builder.ts';

export const schema = builder.toSchema();
export { ApiError, apiErrorOf, ERRORS, type ErrorCode, type ErrorExtras, type FieldError } from '../entities/errors.ts';
export { malformed } from './scalars.ts';
export type { Context, RequiredScope, Viewer } from './context.ts';
