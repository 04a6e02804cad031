/** The OpenAPI 3.1 document, derived from the operation documents and the schema. */
import { isNonNullType } from 'graphql';
import { answerSchema, type Define, inputSchema, type JsonSchema, parameterSchema } from '../compile/json-schema.ts';
import type { Operation } from '../compile/operation.ts';
import { type Parameter, readsCredential } from '../compile/parameters.ts';
import { FORM_TYPE, STYLES } from '../compile/styles.ts';
import { restTerms, worded } from '../compile/terms.ts';
import { CSV_SCHEMA, CSV_TYPE } from '../formats/csv.ts';
import { LINES_SCHEMA, LINES_TYPE } from '../formats/json-lines.ts';
import { QR_FORMATS } from '../formats/qr.ts';
import { RECEIPT_SCHEMA, RECEIPT_TYPE } from '../formats/receipt.ts';
import { KEY_HEADER, KEY_SCHEMA, takesKey } from '../http/idempotency.ts';
import { aboutOf, TAGS } from './about.ts';
import { errorExamples } from './error-examples.ts';
import { ERROR } from './error-schema.ts';
import { eventsOf, MESSAGE_HEADERS } from './events.ts';
import { answerExample, parameterExample, requestExample } from './examples.ts';
import { HEADERS, responsesOf, type Share, sharer } from './responses.ts';

type Json = Record<string, unknown>;

const { description: KEY_DESCRIPTION, ...KEY } = KEY_SCHEMA;
const IDEMPOTENCY_KEY: Json = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: KEY_DESCRIPTION,
  schema: KEY,
};

export function openapi(operations: readonly Operation[], publicUrl: string): Json {
  const schemas = new Map<string, JsonSchema>([['Error', ERROR]]);
  const define = definer(schemas);
  const { share, responses } = sharer();
  const paths: Record<string, Json> = {};
  for (const operation of operations) {
    if (!operation.http) continue;
    const { path, method } = operation.http;
    paths[path] = { ...paths[path], [method.toLowerCase()]: describe(operation, define, share) };
  }
  const webhooks = eventsOf(operations, define);
  const terms = restTerms(operations);
  const document = {
    openapi: '3.1.1',
    info: {
      title: 'Freehold',
      version: '1.0.0',
      description: aboutOf(operations),
      contact: { name: 'Freehold', url: `${publicUrl}/docs` },
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: publicUrl, description: 'The production service.', 'x-internal': false }],
    tags: [...new Set(operations.filter(({ http }) => http).map(({ noun }) => noun))].map((name) => ({
      name,
      description: TAGS[name] ?? `The operations of ${name}.`,
    })),
    paths,
    webhooks,
    components: {
      schemas: Object.fromEntries([...schemas].sort(([a], [b]) => (a < b ? -1 : 1))),
      responses,
      examples: errorExamples(operations, publicUrl, terms),
      parameters: { IdempotencyKey: IDEMPOTENCY_KEY, ...MESSAGE_HEADERS },
      headers: HEADERS,
      securitySchemes: {
        client: { type: 'http', scheme: 'basic', description: 'The id and the secret of an OAuth client.' },
        bearer: { type: 'http', scheme: 'bearer', description: 'An API key or an access token.' },
      },
    },
  };
  return worded(document, terms);
}

/** Stores schemas as components. @throws Error if two different schemas have the same name */
function definer(schemas: Map<string, JsonSchema>): Define {
  return (name, make) => {
    const existing = schemas.get(name);
    const schema = make();
    if (existing && JSON.stringify(existing) !== JSON.stringify(schema))
      throw new Error(`A fragment and an input are both called ${name}.`);
    schemas.set(name, schema);
    return { $ref: `#/components/schemas/${name}` };
  };
}

/** Allows unknown members in the schemas of lenient endpoints, which ignore them. */
const allowingUnknown =
  (define: Define): Define =>
  (name, make) =>
    define(name, () => ({ ...make(), additionalProperties: true }));

function describe(operation: Operation, define: Define, share: Share): Json {
  const { name, noun, description, scopes, input, http } = operation;
  const { forms, lenient, security } = STYLES[http!.style];
  const types = ['application/json', ...(forms ? [FORM_TYPE] : [])];
  const body = input && inputSchema(input.type, lenient ? allowingUnknown(define) : define);
  const answer = answerSchema(operation, define);
  const [summary = ''] = description.split(/(?<=\.)\s+/);
  return {
    operationId: name,
    tags: [noun],
    summary: summary.replace(/\.$/, ''),
    description,
    'x-scope': scopes.join(' ') || 'public',
    'x-availability': http!.status,
    ...(http!.extension && { 'x-extension': true }),
    security: security ?? (scopes.length ? [{ bearer: scopes }] : []),
    ...parametersOf(operation),
    ...(input && {
      requestBody: {
        required: input.required && Object.values(input.type.getFields()).some(({ type }) => isNonNullType(type)),
        content: Object.fromEntries(types.map((type) => [type, { schema: body, example: requestExample(input) }])),
      },
    }),
    responses: responsesOf(operation, contentOf(operation, answer), share),
  };
}

/** The forms of an answer, by media type. */
function contentOf(operation: Operation, schema: JsonSchema): Json {
  const { lines, csv, receipt, qr } = operation.http!;
  return {
    'application/json': { schema, example: answerExample(operation) },
    ...(lines && { [LINES_TYPE]: { schema: LINES_SCHEMA, 'x-extension': true } }),
    ...(csv && { [CSV_TYPE]: { schema: CSV_SCHEMA, 'x-extension': true } }),
    ...(receipt && { [RECEIPT_TYPE]: { schema: RECEIPT_SCHEMA } }),
    ...(qr && Object.fromEntries(Object.entries(QR_FORMATS).map(([type, { schema }]) => [type, { schema }]))),
  };
}

/** The parameters of an operation. It includes the idempotency key, unless the document has that itself. */
function parametersOf(operation: Operation): Json {
  const { parameters } = operation;
  const readsKey = parameters.some(({ header }) => header?.toLowerCase() === KEY_HEADER);
  const all = [
    // OpenAPI ignores a parameter called Authorization, which security schemes describe.
    ...parameters.filter((parameter) => !readsCredential(parameter)).map(parameterObject),
    ...(takesKey(operation) && !readsKey ? [{ $ref: '#/components/parameters/IdempotencyKey' }] : []),
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
    example: parameterExample(parameter),
  };
}
