/** The OpenAPI 3.1 document, derived from the operation documents and the schema. */
import { STATUS_CODES } from 'node:http';
import { isNonNullType } from 'graphql';
import { ERRORS, type ErrorCode } from '../schema/index.ts';
import { KEY_HEADER, KEY_SCHEMA, takesKey } from './idempotency.ts';
import type { Operation } from './operations.ts';
import { type Parameter, readsCredential } from './parameters.ts';
import { answerSchema, type Define, inputSchema, type JsonSchema, parameterSchema } from './schemas.ts';
import { FORM_TYPE, STYLES } from './styles.ts';

type Json = Record<string, unknown>;

export function openapi(operations: readonly Operation[], publicUrl: string): Json {
  const schemas = new Map<string, JsonSchema>([['Error', ERROR]]);
  const define = definer(schemas);
  const paths: Record<string, Json> = {};
  for (const operation of operations) {
    if (!operation.http) continue;
    const { path, method } = operation.http;
    paths[path] = { ...paths[path], [method.toLowerCase()]: describe(operation, define) };
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Freehold',
      version: '1.0.0',
      description: 'VPS and dedicated servers without identity verification, paid in cryptocurrency.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: publicUrl }],
    tags: [...new Set(operations.filter(({ http }) => http).map(({ noun }) => noun))].map((name) => ({ name })),
    paths,
    components: {
      schemas: Object.fromEntries([...schemas].sort(([a], [b]) => (a < b ? -1 : 1))),
      responses: Object.fromEntries(STATUSES.map((status) => [responseName(status), errorResponse(status)])),
      parameters: { IdempotencyKey: IDEMPOTENCY_KEY },
      headers: HEADERS,
      securitySchemes: {
        client: { type: 'http', scheme: 'basic', description: 'Id and secret of an OAuth client.' },
        bearer: { type: 'http', scheme: 'bearer', description: 'An API key or an access token.' },
      },
    },
  };
}

/** Components by name. @throws Error if two different schemas have one name */
function definer(schemas: Map<string, JsonSchema>): Define {
  return (name, make) => {
    const known = schemas.get(name);
    const schema = make();
    if (known && JSON.stringify(known) !== JSON.stringify(schema))
      throw new Error(`A fragment and an input are both called ${name}.`);
    schemas.set(name, schema);
    return { $ref: `#/components/schemas/${name}` };
  };
}

function describe(operation: Operation, define: Define): Json {
  const { name, noun, description, scopes, input, http } = operation;
  const { success, forms, security } = STYLES[http!.style];
  const types = ['application/json', ...(forms ? [FORM_TYPE] : [])];
  const [summary = '', ...more] = description.split(/(?<=\.)\s+/);
  return {
    operationId: name,
    tags: [noun],
    summary: summary.replace(/\.$/, ''),
    ...(more.length && { description }),
    'x-scope': scopes.join(' ') || 'public',
    'x-availability': http!.status,
    security: security ?? (scopes.length ? [{ bearer: scopes }] : []),
    ...parametersOf(operation),
    ...(input && {
      requestBody: {
        required: input.required && Object.values(input.type.getFields()).some(({ type }) => isNonNullType(type)),
        content: Object.fromEntries(types.map((type) => [type, { schema: inputSchema(input.type, define) }])),
      },
    }),
    responses: {
      [success]: {
        description: STATUS_CODES[success],
        headers: {
          ...EVERY_HEADER,
          ...(isPayable(operation) && RECEIPT_HEADERS),
          ...(takesKey(operation) && { 'Idempotency-Replayed': { $ref: '#/components/headers/IdempotencyReplayed' } }),
        },
        content: { 'application/json': { schema: answerSchema(operation, define) } },
      },
      ...(http!.maxAgeSeconds && { 304: { description: 'What If-None-Match names is still right.' } }),
      ...Object.fromEntries(
        statusesOf(operation).map((status) => [
          status === 500 ? '5XX' : status,
          { $ref: `#/components/responses/${responseName(status)}` },
        ]),
      ),
    },
  };
}

/** Whether it takes payments by x402. */
const isPayable = ({ parameters }: Operation): boolean =>
  parameters.some(({ header }) => header?.toLowerCase() === 'payment-signature');

/** Its own, and the idempotency key, unless it reads that itself. */
function parametersOf(operation: Operation): Json {
  const { parameters } = operation;
  const reads = parameters.some(({ header }) => header?.toLowerCase() === KEY_HEADER);
  const all = [
    // OpenAPI has security schemes for this header, and ignores a parameter of its name.
    ...parameters.filter((parameter) => !readsCredential(parameter)).map(parameterObject),
    ...(takesKey(operation) && !reads ? [{ $ref: '#/components/parameters/IdempotencyKey' }] : []),
  ];
  return all.length ? { parameters: all } : {};
}

function parameterObject(parameter: Parameter): Json {
  const { description, ...schema } = parameterSchema(parameter);
  return {
    name: parameter.header ?? parameter.name,
    in: parameter.in,
    required: parameter.required,
    description,
    schema,
  };
}

const { description: KEY_DESCRIPTION, ...KEY } = KEY_SCHEMA;
const IDEMPOTENCY_KEY: Json = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: KEY_DESCRIPTION,
  schema: KEY,
};

const header = (description: string, type: 'string' | 'integer' = 'string'): Json => ({
  description,
  schema: { type },
});
const HEADERS: Json = {
  RequestId: header('Names the request in our logs.'),
  IdempotencyReplayed: header('"true" if this is the answer to an earlier request with the same Idempotency-Key.'),
  PaymentRequired: header('The x402 challenge, version 2: JSON in base64. Version 1 is in the body.'),
  PaymentResponse: header('The receipt of an x402 payment: JSON in base64.'),
  RateLimit: header('What is left of each limit (r), and the seconds until it is renewed (t).'),
  RateLimitPolicy: header('The limits: requests (q) in a window of seconds (w).'),
  RateLimitLimit: header('The requests of the limit with the least left.', 'integer'),
  RateLimitRemaining: header('What is left of it.', 'integer'),
  RateLimitReset: header('When it is renewed, in seconds since the epoch.', 'integer'),
};
const RECEIPT_HEADERS: Json = {
  'PAYMENT-RESPONSE': { $ref: '#/components/headers/PaymentResponse' },
  'X-PAYMENT-RESPONSE': { $ref: '#/components/headers/PaymentResponse' },
};
const EVERY_HEADER: Json = {
  'X-Request-Id': { $ref: '#/components/headers/RequestId' },
  RateLimit: { $ref: '#/components/headers/RateLimit' },
  'RateLimit-Policy': { $ref: '#/components/headers/RateLimitPolicy' },
  'X-RateLimit-Limit': { $ref: '#/components/headers/RateLimitLimit' },
  'X-RateLimit-Remaining': { $ref: '#/components/headers/RateLimitRemaining' },
  'X-RateLimit-Reset': { $ref: '#/components/headers/RateLimitReset' },
};

const STATUSES = [400, 401, 402, 403, 404, 422, 429, 500] as const;
type Status = (typeof STATUSES)[number];

/** The errors that an operation can have, as far as its document tells. */
function statusesOf({ scopes, parameters, input, http, kind, answer }: Operation): Status[] {
  const spends = kind === 'mutation' && scopes.some((scope) => scope === 'servers' || scope === 'billing');
  const { security } = STYLES[http!.style];
  const scoped = scopes.length > 0 || security?.some((one) => Object.values(one).some(({ length }) => length > 0));
  const names = parameters.some((parameter) => parameter.in === 'path') || !isNonNullType(answer.type);
  const applies: Record<Status, boolean> = {
    400: true,
    401: true,
    402: spends,
    403: scoped === true,
    404: names || http!.status === 'PLANNED',
    422: input !== undefined || kind === 'mutation',
    429: true,
    500: true,
  };
  return STATUSES.filter((status) => applies[status]);
}

const responseName = (status: Status): string =>
  status === 500 ? 'InternalError' : STATUS_CODES[status]!.replaceAll(' ', '');

function errorResponse(status: Status): Json {
  const codes = (Object.keys(ERRORS) as ErrorCode[]).filter((code) => ERRORS[code][0] === status);
  const content = { schema: { $ref: '#/components/schemas/Error' } };
  return {
    description: `${STATUS_CODES[status]}. Codes: ${codes.join(', ')}.`,
    headers: {
      ...EVERY_HEADER,
      ...(status === 402 && { 'PAYMENT-REQUIRED': { $ref: '#/components/headers/PaymentRequired' } }),
      ...(status === 429 && { 'Retry-After': { description: 'Seconds.', schema: { type: 'integer', minimum: 1 } } }),
      ...(status === 401 && { 'WWW-Authenticate': { schema: { type: 'string' } } }),
    },
    content: { 'application/json': content, 'application/problem+json': content },
  };
}

const text = (description: string): JsonSchema => ({ type: 'string', description });
const FIELD_ERROR: JsonSchema = {
  type: 'object',
  properties: {
    field: text('The path of the field, with dots.'),
    code: text('What is wrong with it.'),
    message: text('A sentence for humans.'),
    limit: { type: 'number', description: 'The limit that it missed.' },
  },
  required: ['field', 'code', 'message'],
};

/** PaymentRequirements of x402, version 1. */
const X402_REQUIREMENT: JsonSchema = {
  type: 'object',
  properties: {
    scheme: { const: 'exact' },
    network: text('Such as base-sepolia.'),
    maxAmountRequired: text('In units of the asset.'),
    asset: text('The contract of the token.'),
    payTo: text('Who is paid.'),
    resource: { type: 'string', format: 'uri', description: 'What is paid for.' },
    description: text('What is paid for, in words.'),
    mimeType: text('What the answer will be.'),
    maxTimeoutSeconds: { type: 'integer', description: 'How long the payment may take.' },
    extra: {
      type: 'object',
      description: 'The EIP-712 domain of the token.',
      properties: { name: { type: 'string' }, version: { type: 'string' } },
    },
  },
  required: ['scheme', 'network', 'maxAmountRequired', 'asset', 'payTo', 'resource', 'maxTimeoutSeconds'],
};

/** The flat error object (RFC 9457 and more). */
const ERROR: JsonSchema = {
  type: 'object',
  description: 'Every answer that is no success (RFC 9457, with `code` to decide by).',
  properties: {
    type: { type: 'string', format: 'uri', description: 'Where the code is explained.' },
    title: text('The text of the status.'),
    status: { type: 'integer', description: 'The HTTP status.' },
    code: text('Decide by this; codes are added, never changed.'),
    detail: text('A sentence for humans.'),
    request_id: text('Tell us this when you ask for help.'),
    retryable: { type: 'boolean', description: 'Whether the same request may succeed later.' },
    errors: { type: 'array', items: FIELD_ERROR, description: 'The fields that are wrong.' },
    retry_after: { type: 'integer', description: 'Seconds to wait.' },
    required_scope: text('The scope that the credential lacks.'),
    available_regions: { type: 'array', items: { type: 'string' }, description: 'Where there is stock.' },
    required_usd: { type: 'number', description: 'What it costs.' },
    balance_usd: { type: 'number', description: 'What there is.' },
    x402Version: { const: 1, description: 'With a challenge to pay by x402: its version in the body.' },
    accepts: { type: 'array', items: X402_REQUIREMENT, description: 'The payments that x402, version 1, would take.' },
    error: text('On /v1/oauth: the error as OAuth names it. With an x402 challenge: why there is one.'),
    error_description: text('On /v1/oauth: the detail, for OAuth clients.'),
    availability: text('PLANNED, if the endpoint is announced and not available yet.'),
  },
  required: ['type', 'title', 'status', 'code', 'detail', 'request_id', 'retryable'],
};
