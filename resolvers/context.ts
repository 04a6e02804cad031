/** The caller, and the tools of a resolver. */
import type { Limits, RequiredScope } from '../entities/accounts/credential.ts';
import type { AccountLimits } from '../entities/accounts/limits.ts';
import { onBehalfOf, onBehalfOfStranger } from '../entities/caller.ts';
import type { Database } from '../entities/database/database.ts';
import { ApiError } from '../entities/errors.ts';
import { type Actor, OPERATOR_ACCOUNT } from '../entities/history/audit.ts';
import { isId } from '../entities/ids.ts';
import { freeSiteOf, networkOf, siteOf } from '../entities/networks.ts';
import type { OperatorRole } from '../entities/operator.ts';
import type { Vault } from '../entities/secrets.ts';
import type { Provisioning } from '../provisioning/index.ts';
import type { LoginThrottle } from './accounts/auth/throttle.ts';
import type { CountUnpaid } from './accounts/payers.ts';
import type { RequestAudit } from './accounts/request-audit.ts';
import type { SecurityLog } from './accounts/security-log.ts';

/** The caller by a checked credential. */
export interface Viewer {
  /** Null for the operator, who reads every account. */
  accountId: string | null;
  kind: 'api_key' | 'access_token' | 'operator';
  /** `key_…`, `tok_…`, `opr_…`, or `operator` for the token in DATA_DIR. */
  credentialId: string;
  name: string | null;
  scopes: ReadonlySet<RequiredScope>;
  /** The role of an operator. A customer has none. */
  role?: OperatorRole;
  /** The session of an operator who has signed in. Absent: the operator acts by a token. */
  session?: string;
  expiresAt: Date | null;
  /** Whether it is a login: of a person, or of the only way into an account without a password. */
  isLogin?: boolean;
  /** The API key, or the OAuth client of a token; null for a token of a person. It has the limits, and spends. */
  holder?: string | null;
  /** The limits of the holder. Absent: it has none. */
  limits?: Limits | undefined;
  /** The refresh family of a token. */
  family?: string;
  /**
   * Whether the account never paid, as the last count of its calls found. Such accounts of a site take turns together, because
   * one caller can have many. Absent: unknown.
   */
  isUnpaid?: boolean;
  /** The reason of the account's suspension, if it is suspended. */
  suspendedFor?: string | null;
  /** The limits that an operator has set for the account. */
  accountLimits?: Partial<AccountLimits>;
}

/** An announced operation that an installation can serve. */
export type Feature = 'account-update' | 'recovery';
/** @throws ApiError endpoint_planned if this installation does not serve it */
export function requireFeature({ features }: Context, feature: Feature): void {
  if (!features.has(feature)) throw new ApiError('endpoint_planned');
}

/** The context of every resolver: one for a request, or for the life of a subscription. */
export interface Context {
  db: Database;
  provisioning: Provisioning;
  vault: Vault;
  limits: CountedLimits;
  /** The sum that one operator moves in 24 hours without another one, in micro-USD. 0: no limit. */
  operatorLimitMicros: bigint;
  /** Days after which a backup is an open matter. */
  backupDaysMax: number;
  /** The announced operations that this installation serves. */
  features: ReadonlySet<Feature>;
  /** The public address of the service, without a slash at its end. It is the issuer of the tokens. */
  publicUrl: string;
  logins: LoginThrottle;
  registrations: RegistrationRules;
  /** A problem of the public listener that the operator should solve; null: none. */
  listenerWarning?: () => string | null;
  security: SecurityLog;
  countUnpaid: CountUnpaid;
  /** Audits root fields. Absent if the facade audits its requests itself. */
  audit?: RequestAudit;
  viewer: Viewer | null;
  /** The limits that new credentials take over, or null. The schema sets it for each field that `creates` something. */
  inherited?: Limits | null;
  requestId: string;
  /** The digest of the idempotency key. Absent: the request has none. */
  keyDigest?: Buffer | undefined;
  userAgent: string | null;
  /** The caller's IP address, for throttling only. No table and no log has it. */
  address: string | null;
  /** The name of the service as the caller writes it: the header Host. */
  host?: string | undefined;
  /** Sets a header of the answer, if the facade has headers. */
  setHeader?: ((name: string, value: string) => void) | undefined;
  /** Aborts when the caller is gone. */
  signal: AbortSignal;
  /** Aborts when the service stops. Then a waiting resolver answers with the present state. */
  stopping: AbortSignal;
}

/** The account of the caller. @throws ApiError missing_credential, or not_found for the operator, who has no account */
export function accountOf({ viewer }: Context): string {
  if (!viewer) throw new ApiError('missing_credential');
  if (!viewer.accountId)
    throw new ApiError('not_found', 'The operator has no account. Use the credential of a customer.');
  return viewer.accountId;
}

/** Lets only the operator ask for another account. @throws ApiError not_found */
export function requireAccount({ viewer }: Context, asked: string | null | undefined): void {
  if (!asked) return;
  const isKnown = isId('acct', asked) || asked === OPERATOR_ACCOUNT;
  if (!isKnown || (viewer?.accountId ?? asked) !== asked) throw new ApiError('not_found');
}

/** The name under which a credential counts: the API key, the OAuth client, or the refresh family of a token. */
export const countedAs = ({ holder, family, credentialId }: Viewer): string => holder ?? family ?? credentialId;

/** The name under which its calls count. Each login has its own, so a stolen one uses up no calls of the others. */
export const callsCountAs = (viewer: Viewer): string =>
  countedAs(viewer.isLogin ? { ...viewer, holder: null } : viewer);

/** The account of a call, or the network of a caller without a credential. */
export const groupOf = (viewer: Viewer | null, address: string | null): string =>
  viewer?.accountId ?? networkOf(address ?? '');

/** Does the work at the turns of the caller: of the account, or of the site of a stranger. The operator waits for no turn. */
export const atTurnOf = <T, C extends Turn>(context: C, work: (context: C) => T): T =>
  atTurn(context, () => work(context));

/** Does the work at the turn of one address, where no other address of its network counts. */
export const atTurnOfAddress = <T>(address: string, work: () => T): T =>
  onBehalfOf({ kind: 'stranger', group: address }, work);

/** Does the same for a read. A standby may answer it, and it leaves the queues when its caller is gone. */
export function readAtTurnOf<T>(context: Context, read: (context: Context) => T): T {
  const { reads } = context.db;
  const given = reads === context.db ? context : { ...context, db: reads };
  return atTurn(given, () => read(given), context.signal);
}

type Turn = Pick<Context, 'viewer' | 'address'>;

/** A change has no signal, because it must not stop between its steps. */
function atTurn<T>({ viewer, address }: Turn, work: () => T, signal?: AbortSignal): T {
  if (!viewer) return onBehalfOfStranger(address, work, signal);
  if (!viewer.accountId) return work();
  return onBehalfOf({ kind: 'account', group: turnOf({ viewer, address }), signal }, work);
}

/** The turn of a caller: that of the account, or of the site of a stranger or free account. */
export function turnOf({ viewer, address }: Turn): string {
  if (!viewer?.accountId) return siteOf(address ?? '');
  return viewer.isUnpaid ? freeSiteOf(address ?? '') : viewer.accountId;
}

/** The caller, as the audit log names them. */
export const actorOf = ({ viewer, requestId }: Context): Actor => ({
  type: viewer?.kind ?? 'system',
  id: viewer?.credentialId ?? null,
  name: viewer?.name ?? null,
  requestId,
});

/** The limits of the caller's account. Resolvers count under the lock of the account. */
export interface CountedLimits extends AccountLimits {
  unpaidSessionsPerHour: number;
}

export interface RegistrationRules {
  /** Registrations of all callers in a minute that need no proof. */
  perMinute: number;
  /** The leading zero bits of a proof, as long as few registrations exceed the rate. */
  proofBits: number;
}
