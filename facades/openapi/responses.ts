/** The responses in OpenAPI: their headers, and the errors with all their codes. */
import { STATUS_CODES } from 'node:http';
import { ERRORS, type ErrorCode } from '../../schema/index.ts';
import type { JsonSchema } from '../compile/json-schema.ts';
import type { Operation } from '../compile/operation.ts';
import { STYLES } from '../compile/styles.ts';
import type { Terms } from '../compile/terms.ts';
import { takesKey } from '../http/idempotency.ts';

type Json = Record<string, unknown>;

const header = (required: boolean, description: string, schema: JsonSchema): Json => ({
  description,
  required,
  schema,
});
const text = (maxLength: number, pattern: string): JsonSchema => ({ type: 'string', maxLength, pattern });
const count = (minimum: number, maximum = 2 ** 31 - 1): JsonSchema => ({
  type: 'integer',
  format: maximum < 2 ** 31 ? 'int32' : 'int64',
  minimum,
  maximum,
});

const BASE64 = text(16_384, '^[A-Za-z0-9+/=]+$');

/** The headers by name. A required header is in every response that names it. */
const NAMED: Readonly<Record<string, Json>> = {
  'Access-Control-Allow-Origin': header(true, 'Lets browsers call from every origin.', { const: '*' }),
  'Cache-Control': header(
    true,
    'Whether, and for how long, clients may cache the answer.',
    text(64, '^[a-z0-9=, -]+$'),
  ),
  ETag: header(
    true,
    'The version of the answer. Send it as If-None-Match to get 304 if nothing has changed.',
    text(64, '^".+"$'),
  ),
  'Idempotency-Replayed': header(
    false,
    '"true" if this is the stored answer to an earlier request with the same key.',
    {
      const: 'true',
    },
  ),
  'PAYMENT-REQUIRED': header(false, 'The x402 challenge, version 2: JSON in base64. Version 1 is in the body.', BASE64),
  'PAYMENT-RESPONSE': header(
    false,
    'The receipt of an x402 payment that has settled: JSON in base64. In a refusal, the money goes to the balance.',
    BASE64,
  ),
  RateLimit: header(
    true,
    'The remaining requests of each limit (r), and the seconds until its reset (t).',
    text(500, '^"\\w+";r=\\d+;t=\\d+(, "\\w+";r=\\d+;t=\\d+)*$'),
  ),
  'RateLimit-Policy': header(
    true,
    'The limits: requests (q) in a window of seconds (w).',
    text(500, '^"\\w+";q=\\d+;w=\\d+(, "\\w+";q=\\d+;w=\\d+)*$'),
  ),
  'Retry-After': header(true, 'Seconds to wait before the next request.', count(1)),
  'WWW-Authenticate': header(
    true,
    'The authentication that the service expects (RFC 6750, section 3).',
    text(200, '^(Bearer|Basic) '),
  ),
  RetryLater: header(false, 'If a later request may succeed: the seconds to wait.', count(1)),
  RequiredScope: header(false, 'The scope that the credential lacks, if that is the reason.', text(200, '^Bearer ')),
  'X-PAYMENT-RESPONSE': header(false, 'The same receipt as PAYMENT-RESPONSE, for clients of version 1.', BASE64),
  'X-RateLimit-Limit': header(true, 'The requests of the limit with the fewest remaining.', count(0)),
  'X-RateLimit-Remaining': header(true, 'The remaining requests of that limit.', count(0)),
  'X-RateLimit-Reset': header(true, 'The time of its reset, in seconds since the epoch.', count(0, 253_402_300_799)),
  'X-Request-Id': header(true, 'The id of the request. Name it when you ask for help.', text(64, '^[A-Za-z0-9_-]+$')),
};
const RATES = ['RateLimit', 'RateLimit-Policy', 'X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'];
/** A fault may come before the rate limits count the request. */
const ifCounted = (name: string): string => `${name}-IfCounted`;
export const HEADERS: Readonly<Record<string, Json>> = {
  ...NAMED,
  ...Object.fromEntries(RATES.map((name) => [ifCounted(name), { ...NAMED[name], required: false }])),
};
/** References to headers. `target` maps the name of a header to that of its component. */
const refer = (names: readonly string[], target = (name: string): string => name): Json =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${target(name)}` }]));
const ANY_HEADERS = refer(['Access-Control-Allow-Origin', 'Cache-Control', 'X-Request-Id']);
/** The headers of every response to a counted request. */
const EVERY_HEADER = { ...ANY_HEADERS, ...refer(RATES) };
const BROKEN_HEADERS = { ...ANY_HEADERS, ...refer(RATES, ifCounted) };

const STATUSES = [400, 401, 402, 403, 404, 422, 429, 500, 503] as const;
type Status = (typeof STATUSES)[number];
const NOT_MODIFIED = 304;

const RECEIPTS = refer(['PAYMENT-RESPONSE', 'X-PAYMENT-RESPONSE']);

/** A receipt in a refusal says that the payment has settled, and goes to the balance. */
const HEADERS_OF: Readonly<Partial<Record<Status, Json>>> = {
  401: { ...EVERY_HEADER, ...refer(['WWW-Authenticate']) },
  402: { ...EVERY_HEADER, ...refer(['PAYMENT-REQUIRED']) },
  403: { ...EVERY_HEADER, ...refer(['WWW-Authenticate'], () => 'RequiredScope'), ...RECEIPTS },
  422: { ...EVERY_HEADER, ...refer(['Retry-After'], () => 'RetryLater'), ...RECEIPTS },
  429: { ...EVERY_HEADER, ...refer(['Retry-After']) },
  500: BROKEN_HEADERS,
  503: { ...BROKEN_HEADERS, ...refer(['Retry-After']) },
};

/** All the responses of an operation, by status. */
export function responsesOf(operation: Operation, content: Json): Json {
  const { http } = operation;
  const { success } = STYLES[http!.style];
  const cacheable = http!.maxAgeSeconds !== undefined;
  const own = {
    ...EVERY_HEADER,
    ...(cacheable && refer(['ETag'])),
    ...(takesKey(operation) && refer(['Idempotency-Replayed'])),
    ...(isPayable(operation) && RECEIPTS),
  };
  return {
    [success]: { description: STATUS_CODES[success], headers: own, content },
    ...Object.fromEntries(
      [...(cacheable ? [NOT_MODIFIED] : []), ...statusesOf(operation)].map((status) => [
        status,
        { $ref: `#/components/responses/${nameOf(status)}` },
      ]),
    ),
  };
}

/** Whether the operation takes payments by x402. */
const isPayable = ({ parameters }: Operation): boolean =>
  parameters.some((parameter) => parameter.header?.toLowerCase() === 'payment-signature');

/** The responses that operations share, by name. */
export const sharedResponses = (publicUrl: string, terms: Terms): Json => ({
  [nameOf(NOT_MODIFIED)]: {
    description: 'The answer has not changed since the version in If-None-Match.',
    headers: { ...EVERY_HEADER, ...refer(['ETag']) },
  },
  ...Object.fromEntries(STATUSES.map((status) => [nameOf(status), errorResponse(status, publicUrl, terms)])),
});

const nameOf = (status: number): string => STATUS_CODES[status]!.replaceAll(' ', '');

/** The error statuses of an operation, as far as its document shows. */
function statusesOf({ scopes, input, kind }: Operation): Status[] {
  const spends = kind === 'mutation' && scopes.some((scope) => scope === 'servers' || scope === 'billing');
  // The listener checks every credential, so 401 and 403 may occur everywhere.
  const applies: Partial<Record<Status, boolean>> = { 402: spends, 422: input !== undefined || kind === 'mutation' };
  return STATUSES.filter((status) => applies[status] ?? true);
}

function errorResponse(status: Status, publicUrl: string, terms: Terms): Json {
  const codes = (Object.keys(ERRORS) as ErrorCode[]).filter((code) => ERRORS[code][0] === status);
  const examples = Object.fromEntries(codes.map((code) => [code, { value: errorExample(code, publicUrl, terms) }]));
  const schema = { $ref: '#/components/schemas/Error' };
  return {
    description: `${STATUS_CODES[status]}. Codes: ${codes.join(', ')}.`,
    headers: HEADERS_OF[status] ?? EVERY_HEADER,
    content: { 'application/json': { schema, examples }, 'application/problem+json': { schema } },
  };
}

/** The additional members of some errors. */
const EXTRAS: Readonly<Partial<Record<ErrorCode, Json>>> = {
  endpoint_planned: { availability: 'PLANNED' },
  insufficient_scope: { required_scope: 'servers' },
  insufficient_balance: { required_usd: 6, balance_usd: 1.5 },
  out_of_stock: { available_regions: ['ams', 'fra'] },
  proof_of_work_required: { challenge: '1:20:1795348800:Zm9yIGV4YW1wbGU:7c6PpQ0bJ8mYt1r0bq3ZyqF2xk5v9wLhN4sTgUoEdIk' },
  rate_limited: { retry_after: 12 },
  login_throttled: { retry_after: 60 },
  unavailable: { retry_after: 1 },
  unknown_field: {
    detail: 'There is no field hostnam. Did you mean hostname?',
    errors: [{ field: 'hostnam', code: 'unknown_field', message: 'There is no field hostnam. Did you mean hostname?' }],
  },
  validation_failed: {
    detail: 'limit must be at most 200.',
    errors: [{ field: 'limit', code: 'too_high', message: 'limit must be at most 200.', limit: 200 }],
  },
};

function errorExample(code: ErrorCode, publicUrl: string, terms: Terms): Json {
  const [status, detail, retryable] = ERRORS[code] as readonly [number, string, string?];
  return {
    type: `${publicUrl}/docs/errors#${code}`,
    title: STATUS_CODES[status],
    status,
    code,
    detail: terms(detail),
    request_id: 'req_01m7z3eaymx8r1n4b6tq0c5d2h',
    retryable: retryable !== undefined,
    ...EXTRAS[code],
  };
}
