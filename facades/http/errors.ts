/**
 * Errors as callers see them: one flat object with the members of RFC 9457 and `code`. OAuth and x402 clients also read its
 * member `error`.
 */
import { STATUS_CODES } from 'node:http';
import {
  type ApiError,
  apiErrorOf,
  causesOf,
  type ErrorCode,
  type ErrorExtras,
  faultOf,
  usdFromMicros,
} from '../../schema/index.ts';
import type { Terms } from '../compile/terms.ts';

/** Writes a line of the log. A line never has bodies, credentials, network addresses or values of inputs. */
export type Log = (line: Readonly<Record<string, unknown>>) => void;

export interface ErrorResponse {
  status: number;
  headers: Readonly<Record<string, string>>;
  body: Readonly<Record<string, unknown>>;
}

/** Returns the error that callers may see, in every facade. Logs any other error, and masks it. */
export function shownError(thrown: unknown, log: Log): ApiError {
  const apiError = apiErrorOf(thrown);
  if (apiError) return apiError;
  log(scrubbed(thrown));
  return faultOf(thrown);
}

/** Makes the response for a thrown value. The log of a fault names the operation. */
export type ErrorResponder = (error: unknown, requestId: string, operation?: string) => ErrorResponse;

/** @param terms shows operations as the callers of the facade know them */
export function errorResponder(publicUrl: string, onError: Log, terms: Terms): ErrorResponder {
  return (thrown, requestId, operation) => {
    const error = shownError(thrown, (line) =>
      onError({ request_id: requestId, ...(operation && { operation }), ...line }),
    );
    const { status, http } = error.extensions as { status: number; http: { headers: Record<string, string> } };
    return {
      status,
      headers: { ...challenge(error), ...http.headers },
      body: problem(error, status, `${publicUrl}/docs/errors#${error.code}`, requestId, terms),
    };
  };
}

function problem(
  { code, message, extensions, extras }: ApiError,
  status: number,
  type: string,
  requestId: string,
  terms: Terms,
) {
  return {
    type,
    title: STATUS_CODES[status],
    status,
    code,
    detail: terms(message),
    request_id: requestId,
    retryable: extensions.retryable,
    ...(code === 'endpoint_planned' && { availability: 'PLANNED' }),
    ...membersOf(extras, terms),
  };
}

function membersOf(extras: ErrorExtras, terms: Terms) {
  const { errors, retryAfter, challenge: work, requiredScope } = extras;
  const { availableRegions, requiredMicros, balanceMicros, x402 } = extras;
  return {
    ...(errors && { errors: errors.map((error) => ({ ...error, message: terms(error.message) })) }),
    ...(retryAfter !== undefined && { retry_after: retryAfter }),
    ...(work !== undefined && { challenge: work }),
    ...(requiredScope !== undefined && { required_scope: requiredScope }),
    ...(availableRegions && { available_regions: availableRegions }),
    ...(requiredMicros !== undefined && { required_usd: usdFromMicros(requiredMicros) }),
    ...(balanceMicros !== undefined && { balance_usd: usdFromMicros(balanceMicros) }),
    ...(x402 && { x402Version: 1, ...x402 }),
  };
}

const REALM = 'Bearer realm="svc"';
const INVALID_TOKEN: ReadonlySet<ErrorCode> = new Set([
  'invalid_credential',
  'expired_credential',
  'revoked_credential',
]);

/** The WWW-Authenticate header. For a missing credential it has no error code (RFC 6750, section 3). */
function challenge({ code, extras, extensions }: ApiError): Record<string, string> | undefined {
  if (code === 'insufficient_scope') {
    const scope = extras.requiredScope ? `, scope="${extras.requiredScope}"` : '';
    return { 'www-authenticate': `${REALM}, error="insufficient_scope"${scope}` };
  }
  if (extensions.status !== 401) return undefined;
  // RFC 6749, section 5.2: the scheme with which a client authenticates.
  if (code === 'invalid_client') return { 'www-authenticate': 'Basic realm="svc"' };
  return { 'www-authenticate': INVALID_TOKEN.has(code) ? `${REALM}, error="invalid_token"` : REALM };
}

/** The loggable parts of an error: its message without quoted values, and its stack. */
export function scrubbed(thrown: unknown): Record<string, unknown> {
  const error = causesOf(thrown).at(-1);
  if (!error) return { message: typeof thrown };
  const { code, constraint, table } = error as unknown as Record<string, unknown>;
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  return {
    name: error.name,
    message: error.message.replace(/"[^"]*"|: .*$/gs, ' …').slice(0, 300),
    ...(typeof code === 'string' && { code }),
    ...(typeof constraint === 'string' && { constraint }),
    ...(typeof table === 'string' && { table }),
    stack: frames.slice(0, 12).map((line) => line.trim()),
  };
}
