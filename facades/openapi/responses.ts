/** The responses in OpenAPI: their headers, and the errors that an operation can answer. */
import { STATUS_CODES } from 'node:http';
import { ERRORS, type ErrorCode } from '../../schema/index.ts';
import type { JsonSchema } from '../compile/json-schema.ts';
import type { Operation } from '../compile/operation.ts';
import { STYLES } from '../compile/styles.ts';
import { takesKey } from '../http/idempotency.ts';
import { codesOf } from './codes.ts';

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

/** Stores the response of an operation as a shared one, and returns a reference to it. */
export type Share = (status: number, operation: string, response: Json) => Json;

/** All the responses of an operation, by status. Operations with the same errors of a status share a response. */
export function responsesOf(operation: Operation, content: Json, share: Share): Json {
  const { http, name } = operation;
  const { success } = STYLES[http!.style];
  const cacheable = http!.maxAgeSeconds !== undefined;
  const own = {
    ...EVERY_HEADER,
    ...(cacheable && refer(['ETag'])),
    ...(takesKey(operation) && refer(['Idempotency-Replayed'])),
    ...(operation.pays && RECEIPTS),
  };
  const codes = Object.groupBy(codesOf(operation), (code) => ERRORS[code][0]);
  return {
    [success]: { description: STATUS_CODES[success], headers: own, content },
    ...(cacheable && { 304: share(304, name, NOT_MODIFIED) }),
    ...Object.fromEntries(
      STATUSES.flatMap((status) =>
        codes[status] ? [[status, share(status, name, errorResponse(status, codes[status]))]] : [],
      ),
    ),
  };
}

/** Keeps responses by name. Equal ones share a name. The first of a status has the name of the status alone. */
export function sharer(): { share: Share; responses: Json } {
  const responses: Json = {};
  const names = new Map<string, string>();
  const share: Share = (status, operation, response) => {
    const text = JSON.stringify(response);
    const plain = STATUS_CODES[status]!.replaceAll(' ', '');
    const name = names.get(text) ?? (plain in responses ? `${plain}-${operation}` : plain);
    names.set(text, name);
    responses[name] = response;
    return { $ref: `#/components/responses/${name}` };
  };
  // A path without an endpoint answers this one, so it has the plain name.
  share(404, '', errorResponse(404, ['not_found']));
  return { share, responses };
}

const NOT_MODIFIED: Json = {
  description: 'The answer has not changed since the version in If-None-Match.',
  headers: { ...EVERY_HEADER, ...refer(['ETag']) },
};

function errorResponse(status: Status, codes: readonly ErrorCode[]): Json {
  const examples = Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }]));
  const schema = { $ref: '#/components/schemas/Error' };
  return {
    description: `${STATUS_CODES[status]}. Codes: ${codes.join(', ')}.`,
    headers: HEADERS_OF[status] ?? EVERY_HEADER,
    content: { 'application/json': { schema, examples }, 'application/problem+json': { schema } },
  };
}
