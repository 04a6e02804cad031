/**
 * The limits of new credentials. A new credential has at least the limits of its creator, so creating one escapes no limit.
 * A created credential with limits creates no further credentials. The creations of an OAuth client end with it. An SSH
 * key counts as a creation, because later servers admit its holder.
 */
import type { Limits } from '../../../entities/accounts/credential.ts';
import { ApiError, type ErrorCode } from '../../../entities/errors.ts';
import { usdFromMicros } from '../../../entities/money.ts';
import { allowedBy } from '../../../entities/networks.ts';
import type { Context, Viewer } from '../../context.ts';

/** The limits that a request asks for. */
export interface AskedLimits {
  ipAllowlist?: string[] | null | undefined;
  expiresAt?: Date | null | undefined;
  /** Micro-USD in a calendar month (UTC). */
  spendLimitMicros?: bigint | null | undefined;
}

/** The creation of a root field. It creates `tokens` for a password, a secret or another token, so no limits apply. */
export type Created = 'credential' | 'webhook' | 'ssh_key' | 'tokens';

/**
 * Returns the limits that a new credential takes over from the caller's; null: none.
 * @throws ApiError insufficient_scope if the caller's has limits and another credential created it
 */
export function limitsOfCreator(viewer: Viewer | null, created: Exclude<Created, 'tokens'>): Limits | null {
  const { limits = NO_LIMITS, holder = null, kind } = viewer ?? {};
  const { ipAllowlist, spendLimitMicros, expiresAt, limitedBy } = limits;
  // The webhook of a named operator ends with the creator's token. A session hands no end on.
  if (kind === 'operator') return limitsOfOperator(viewer!);
  if (!ipAllowlist.length && spendLimitMicros === null && !expiresAt) {
    // Without limits, an API key hands only the client on that it came from.
    const client = kind === 'access_token' ? holder : limitedBy;
    return client ? { ...limits, limitedBy: client } : null;
  }
  if (limitedBy && created === 'credential')
    throw wider(`This credential has limits and was created by ${limitedBy}, so it cannot create another.`);
  return { ...limits, limitedBy: holder };
}
/** The token in DATA_DIR never expires, and hands nothing on. */
const limitsOfOperator = ({ expiresAt, credentialId, session }: Viewer): Limits | null =>
  expiresAt && { ...NO_LIMITS, expiresAt: session ? null : expiresAt, limitedBy: credentialId };
const NO_LIMITS: Limits = { ipAllowlist: [], spendLimitMicros: null, expiresAt: null, limitedBy: null };

/**
 * Returns the limits of a new credential: the requested ones, and else those of its creator.
 * @param refusal the code for an expiry in the past
 * @throws ApiError insufficient_scope for a limit that is wider than the creator's, or the refusal
 */
export function newLimits(
  { inherited }: Context,
  asked: AskedLimits,
  refusal: ErrorCode = 'validation_failed',
): Limits {
  if (inherited === undefined) throw new Error('The root field does not state what it creates.');
  const { expiresAt = null, spendLimitMicros = null } = asked;
  const ipAllowlist = [...new Set(asked.ipAllowlist)];
  if (expiresAt && !(expiresAt.getTime() > Date.now())) throw inThePast(refusal);
  if (!inherited) return { ipAllowlist, expiresAt, spendLimitMicros, limitedBy: null };
  const isAllowed = allowedBy(inherited.ipAllowlist);
  const foreign = ipAllowlist.find((network) => !isAllowed(network));
  if (foreign) throw wider(`ip_allowlist: ${foreign} is outside of ${inherited.ipAllowlist.join(', ')}.`);
  if (expiresAt && inherited.expiresAt && expiresAt > inherited.expiresAt)
    throw wider(`expires_at is after ${inherited.expiresAt.toISOString()}.`);
  if (exceeds(spendLimitMicros, inherited.spendLimitMicros))
    throw wider(`spend_limit_usd is above ${usdFromMicros(inherited.spendLimitMicros!)} USD.`);
  return {
    ipAllowlist: ipAllowlist.length ? ipAllowlist : inherited.ipAllowlist,
    expiresAt: expiresAt ?? inherited.expiresAt,
    spendLimitMicros: spendLimitMicros ?? inherited.spendLimitMicros,
    limitedBy: inherited.limitedBy,
  };
}

const exceeds = (asked: bigint | null, limit: bigint | null): boolean =>
  asked !== null && limit !== null && asked > limit;

const wider = (reason: string): ApiError =>
  new ApiError(
    'insufficient_scope',
    `A credential creates nothing with wider limits than its own. ${reason} Leave the limit out, or use a credential without limits.`,
  );

function inThePast(refusal: ErrorCode): ApiError {
  const message = 'expires_at must be in the future.';
  return new ApiError(refusal, message, { errors: [{ field: 'expires_at', code: 'too_low', message }] });
}
