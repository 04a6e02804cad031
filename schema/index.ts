/** The schema: the only door through which facades reach the domain. */
import './scalars/index.ts';
import './accounts/account.ts';
import './servers/address-pools.ts';
import './payments/adjustments.ts';
import './agents/agents.ts';
import './accounts/audit.ts';
import './accounts/api-keys.ts';
import './accounts/auth.ts';
import './payments/billing.ts';
import './catalog/catalog.ts';
import './servers/deployments.ts';
import './servers/findings.ts';
import './servers/hosts.ts';
import './catalog/images.ts';
import './servers/manual-jobs.ts';
import './accounts/oauth.ts';
import './accounts/oauth-clients.ts';
import './payments/books.ts';
import './payments/payments.ts';
import './planned.ts';
import './servers/servers.ts';
import './servers/changes.ts';
import './accounts/ssh-keys.ts';
import './catalog/stock.ts';
import './operators/tasks.ts';
import './transparency/transparency.ts';
import './accounts/usage.ts';
import './accounts/sessions.ts';
import './accounts/totp.ts';
import './webhooks/webhooks.ts';
import './payments/x402-payments.ts';
import { builder } from './builder.ts';

export const schema = builder.toSchema();
export {
  ApiError,
  apiErrorOf,
  causesOf,
  ERRORS,
  type ErrorCode,
  type ErrorExtras,
  type FieldError,
} from '../entities/errors.ts';
export { usdFromMicros } from '../entities/money.ts';
export type { Counted, Taken } from '../entities/rate-limit.ts';
export { networkOf } from '../resolvers/accounts/auth/networks.ts';
export { requireActive } from '../resolvers/accounts/auth/scope.ts';
export { faultOf } from '../resolvers/fault.ts';
export { takeHint } from '../resolvers/hints.ts';
export type { Context, RequiredScope, Viewer } from './context.ts';
export { malformed } from './scalars/scalar.ts';
