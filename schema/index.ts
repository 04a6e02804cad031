/** The schema. Facades reach the domain only through this module. */
import './scalars/index.ts';
import './accounts/account.ts';
import './accounts/api-keys.ts';
import './accounts/audit.ts';
import './accounts/auth.ts';
import './accounts/cases.ts';
import './accounts/customer.ts';
import './accounts/messages.ts';
import './accounts/oauth-clients.ts';
import './accounts/oauth.ts';
import './accounts/recovery.ts';
import './accounts/revoke.ts';
import './accounts/sessions.ts';
import './accounts/ssh-keys.ts';
import './accounts/totp.ts';
import './accounts/usage.ts';
import './agents.ts';
import './catalog/catalog.ts';
import './catalog/engine-images.ts';
import './catalog/images.ts';
import './catalog/regions.ts';
import './catalog/stock.ts';
import './catalog/tiers.ts';
import './operators.ts';
import './operator-sessions.ts';
import './open-matters.ts';
import './operator-events.ts';
import './payments/adjustments.ts';
import './payments/billing.ts';
import './incidents.ts';
import './payments/bonus.ts';
import './payments/payments.ts';
import './payments/payouts.ts';
import './payments/proposals.ts';
import './payments/receipts.ts';
import './payments/x402.ts';
import './reports.ts';
import './servers/address-pools.ts';
import './servers/changes.ts';
import './servers/deployments.ts';
import './servers/engines.ts';
import './servers/findings.ts';
import './servers/hosts.ts';
import './servers/manual-jobs.ts';
import './servers/metrics.ts';
import './servers/servers.ts';
import './tasks.ts';
import './transparency.ts';
import './webhooks.ts';
import { builder } from './builder.ts';

export const schema = builder.toSchema({ sortSchema: false });
export type { RequiredScope } from '../entities/accounts/credential.ts';
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
export type { Span } from '../entities/monitoring/traces.ts';
export { freeSiteOf, isCircuit, isOnionHost, networkCheck, networkOf, siteOf } from '../entities/networks.ts';
export type { Counted, Quota, Taken } from '../entities/rate-limit.ts';
export { FIRST_OWNER } from '../resolvers/accounts/auth/credential.ts';
export type { CredentialEnd, CredentialWatch } from '../resolvers/accounts/auth/credential-end.ts';
export { requireActive } from '../resolvers/accounts/auth/scope.ts';
export { requireRepeatedStepUp, requireStepUp } from '../resolvers/accounts/auth/step-up.ts';
export { Ceiling, Turns } from '../resolvers/ceiling.ts';
export {
  atTurnOf,
  atTurnOfAddress,
  type Context,
  callsCountAs,
  countedAs,
  groupOf,
  readAtTurnOf,
  turnOf,
  type Viewer,
} from '../resolvers/context.ts';
export { faultOf, nearest, shortened, suggestion, withoutSecrets } from '../resolvers/errors.ts';
export { restOfRound } from '../resolvers/large-answers.ts';
export { acceptProcessorWebhook } from '../resolvers/payments/gateways.ts';
export { type ListedEvent, toldEvents } from '../resolvers/webhooks.ts';
export { EXPECTED, malformed } from './scalars/scalar.ts';
