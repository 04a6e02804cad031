/**
 * What the outside sees of an error: one flat object (RFC 9457 members and `code`) with its status and headers. OAuth
 * and x402 clients read a top-level string `error` beside them; such members belong into `problem`, too.
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

/** A line of the log: no bodies, no credentials, no addresses, no values of inputs. */
export type Log = (line: Readonly<Record<string, unknown>>) => void;

export interface ErrorAnswer {
  status: number;
  headers: Readonly<Record<string, string>>;
  body: Readonly<Record<string, unknown>>;
}

/** The error that the caller may see, in whatever facade. What is no ApiError is logged, and masked. */
export function shownError(thrown: unknown, log: Log): ApiError {
  const known = apiErrorOf(thrown);
  if (known) return known;
  log(scrubbed(thrown));
  return faultOf(thrown);
}

/** Turns whatever was thrown into an answer. */
export type AnswerError = (error: unknown, requestId: string) => ErrorAnswer;

export function errorAnswers(publicUrl: string, onError: Log): AnswerError {
  return (thrown, requestId) => {
    const error = shownError(thrown, (line) => onError({ request_id: requestId, ...line }));
    const { status, http } = error.extensions as { status: number; http: { headers: Record<string, string> } };
    return {
      status,
      headers: { ...challenge(error), ...http.headers },
      body: problem(error, status, `${publicUrl}/docs/errors#${error.code}`, requestId),
    };
  };
}

function problem({ code, message, extensions, extras }: ApiError, status: number, type: string, requestId: string) {
  return {
    type,
    title: STATUS_CODES[status],
    status,
    code,
    detail: message,
    request_id: requestId,
    retryable: extensions.retryable,
    ...(code === 'endpoint_planned' && { availability: 'PLANNED' }),
    ...membersOf(extras),
  };
}

function membersOf({
  errors,
  retryAfter,
  requiredScope,
  availableRegions,
  requiredMicros,
  balanceMicros,
  x402,
}: ErrorExtras) {
  return {
    ...(errors && { errors }),
    ...(retryAfter !== undefined && { retry_after: retryAfter }),
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

/** RFC 6750, section 3: a missing credential is challenged without an error code. */
function challenge({ code, extras, extensions }: ApiError): Record<string, string> | undefined {
  if (code === 'insufficient_scope')
    return { 'www-authenticate': `${REALM}, error="insufficient_scope", scope="${extras.requiredScope ?? ''}"` };
  if (extensions.status !== 401) return undefined;
  // RFC 6749, section 5.2: the scheme by which a client can prove itself.
  if (code === 'invalid_client') return { 'www-authenticate': 'Basic realm="svc"' };
  return { 'www-authenticate': INVALID_TOKEN.has(code) ? `${REALM}, error="invalid_token"` : REALM };
}

/** What may be logged of an error: its text without quoted values, and where it was thrown. */
function scrubbed(thrown: unknown): Record<string, unknown> {
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
