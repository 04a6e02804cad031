/** Who asks, and what a resolver has to answer with. */
import type { RequiredScope } from '../entities/accounts/credential.ts';
import type { Database } from '../entities/database/database.ts';
import { ApiError } from '../entities/errors.ts';
import type { Actor } from '../entities/history/audit.ts';
import type { Vault } from '../entities/secrets.ts';
import type { Provisioning } from '../provisioning/index.ts';
import type { LoginThrottle } from './accounts/auth/throttle.ts';

/** A credential that has been checked. */
export interface Viewer {
  /** Null for the operator, who sees every account. */
  accountId: string | null;
  kind: 'api_key' | 'access_token' | 'operator';
  /** `key_…`, `tok_…` or `operator`. */
  credentialId: string;
  name: string | null;
  scopes: ReadonlySet<RequiredScope>;
  expiresAt: Date | null;
  /** What an API key may spend in a calendar month (UTC), in micro-USD; null: no limit. */
  spendLimitMicros?: bigint | null;
  /** Why the account is suspended, if it is. */
  suspendedFor?: string | null;
}

/** What every resolver gets; one for a request, or for the life of a subscription. */
export interface Context {
  db: Database;
  provisioning: Provisioning;
  vault: Vault;
  limits: AccountLimits;
  /** Where the service is reached from outside, without a slash at its end: the issuer of its tokens. */
  publicUrl: string;
  logins: LoginThrottle;
  viewer: Viewer | null;
  requestId: string;
  userAgent: string | null;
  /** The caller's; for throttling only. It is never written down, also not in a log. */
  address: string | null;
  /** Sets a header of the answer, if the facade has such. */
  setHeader?: ((name: string, value: string) => void) | undefined;
  /** Aborted when the caller is gone. */
  signal: AbortSignal;
  /** Aborted when the service stops: whoever waits answers with what is. */
  stopping: AbortSignal;
}

/** The account of the caller. @throws ApiError not_found for the operator, who has none */
export function accountOf({ viewer }: Context): string {
  if (!viewer) throw new ApiError('missing_credential');
  if (!viewer.accountId)
    throw new ApiError('not_found', 'The operator has no account of its own. Use a credential of a customer.');
  return viewer.accountId;
}

/** How the caller is named in the audit log. */
export const actorOf = ({ viewer, requestId }: Context): Actor => ({
  type: viewer?.kind ?? 'system',
  id: viewer?.credentialId ?? null,
  name: viewer?.name ?? null,
  requestId,
});

/** How many of each thing an account may have; they are counted under the lock of the account. */
export interface AccountLimits {
  apiKeys: number;
  servers: number;
  sshKeys: number;
  webhooks: number;
  agentEntries: number;
  pendingTopups: number;
  sessions: number;
  oauthClients: number;
}
