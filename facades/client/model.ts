/** The operations and types of the OpenAPI document, as the generators of the SDKs need them. */
import type { Schema } from './schema.ts';

/** An endpoint that works now. */
export interface ClientOperation {
  /** Its operationId. */
  name: string;
  summary: string;
  method: string;
  /** With its path parameters in braces. */
  path: string;
  /** The names of its query parameters. */
  query: string[];
  hasBody: boolean;
  /** Whether it takes an idempotency key, so that a client can repeat it. */
  isKeyed: boolean;
  /** Whether its answer is a page of a list. */
  isPage: boolean;
  /** All parameters and members of the body together. */
  input: Schema;
  answer: Schema;
}

interface Parameter {
  $ref?: string;
  name: string;
  in: string;
  required: boolean;
  description: string;
  schema: Schema;
}
interface Content {
  content?: Record<string, { schema: Schema }>;
}
interface Endpoint {
  operationId: string;
  summary: string;
  'x-availability': string;
  parameters?: Parameter[];
  requestBody?: Content;
  responses: Record<string, Content>;
}
export interface OpenApi {
  paths: Record<string, Record<string, Endpoint>>;
  components: { schemas: Record<string, Schema> };
}

const JSON_TYPE = 'application/json';
const KEY = '#/components/parameters/IdempotencyKey';

/** Returns the endpoints that are LIVE and speak JSON. Clients of OAuth (RFC 6749) have libraries of their own. */
export function operationsOf({ paths, components }: OpenApi): ClientOperation[] {
  return Object.entries(paths).flatMap(([path, endpoints]) =>
    Object.entries(endpoints).flatMap(([method, endpoint]) => {
      const { operationId: name, summary, parameters = [], requestBody, responses } = endpoint;
      const types = Object.keys(requestBody?.content ?? { [JSON_TYPE]: {} });
      if (endpoint['x-availability'] !== 'LIVE' || types.join() !== JSON_TYPE) return [];
      const given = parameters.filter((parameter) => parameter.in === 'path' || parameter.in === 'query');
      const answer = (responses[200] ?? responses[201])!.content![JSON_TYPE]!.schema;
      const body = requestBody?.content?.[JSON_TYPE]?.schema;
      const members = body?.$ref ? components.schemas[body.$ref.split('/').at(-1)!]! : body;
      return {
        ...{ name, summary, path, answer },
        method: method.toUpperCase(),
        query: given.flatMap((one) => (one.in === 'query' ? one.name : [])),
        hasBody: body !== undefined,
        isKeyed: parameters.some(({ $ref }) => $ref === KEY),
        isPage: answer.properties?.has_more !== undefined,
        input: inputOf(given, members),
      };
    }),
  );
}

function inputOf(parameters: Parameter[], body: Schema | undefined): Schema {
  const named = parameters.map(({ name, schema, description }) => [name, { ...schema, description }] as const);
  const required = parameters.flatMap((one) => (one.required ? one.name : []));
  return {
    type: 'object',
    properties: { ...Object.fromEntries(named), ...body?.properties },
    required: [...required, ...(body?.required ?? [])],
  };
}
