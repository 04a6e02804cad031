/** The schema: the only door through which facades reach the domain. */
import './scalars/index.ts';
import './account.ts';
import './agents.ts';
import './audit.ts';
import './api-keys.ts';
import './auth.ts';
import './billing.ts';
import './catalog.ts';
import './oauth.ts';
import './operator.ts';
import './planned.ts';
import './servers.ts';
import './server-changes.ts';
import './ssh-keys.ts';
import './transparency.ts';
import './usage.ts';
import './sessions.ts';
import './totp.ts';
import './webhooks.ts';
import { builder } from './builder.ts';

export const schema = builder.toSchema();
export { ApiError, apiErrorOf, ERRORS, type ErrorCode, type ErrorExtras, type FieldError } from '../entities/errors.ts';
export { usdFromMicros } from '../entities/money.ts';
export type { Counted, Taken } from '../entities/rate.ts';
export type { Context, RequiredScope, Viewer } from './context.ts';
export { malformed } from './scalars/scalar.ts';
