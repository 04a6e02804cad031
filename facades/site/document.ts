/** Reads the OpenAPI document for the pages of the reference. */
import type { Operation } from '../compile/operation.ts';

/** A JSON Schema, with the keywords that the pages show. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  format?: string;
  description?: string;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: Schema | boolean;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
}

interface Media {
  schema?: Schema;
  example?: unknown;
  examples?: Record<string, { $ref?: string; value?: unknown }>;
}
interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header';
  required?: boolean;
  description?: string;
  schema: Schema;
  example?: unknown;
}
interface Response {
  description: string;
  content?: Record<string, Media>;
}
interface Described {
  operationId: string;
  tags: string[];
  summary: string;
  description: string;
  'x-scope': string;
  'x-availability': string;
  'x-extension'?: boolean;
  security: Record<string, string[]>[];
  parameters?: (Parameter | { $ref: string })[];
  requestBody?: { required: boolean; content: Record<string, Media> };
  responses: Record<string, Response | { $ref: string }>;
}
interface Document {
  info: { title: string; description: string };
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, Described>>;
  components: Record<string, Record<string, unknown>>;
}

/** An operation as its page shows it. */
export interface Endpoint {
  name: string;
  noun: string;
  method: string;
  path: string;
  /** The path of its page. */
  page: string;
  /** A few words, such as `Order server`. */
  title: string;
  summary: string;
  description: string;
  scope: string;
  isPlanned: boolean;
  parameters: Parameter[];
  /** The request body: its types in the order of the document, its schema and its example. */
  body: { types: string[]; schema: Schema; example: unknown; isRequired: boolean } | undefined;
  /** The scheme of the credential that a caller of it sends. */
  credential: 'bearer' | 'client' | undefined;
  answer: { schema: Schema | undefined; example: unknown; otherTypes: string[] };
  errors: { status: string; codes: string[] }[];
  /** The MCP tool of the same operation. */
  tool: string | undefined;
  /** The argument that the caller of the tool must confirm. */
  confirmed: string | undefined;
}

export interface Noun {
  name: string;
  title: string;
  description: string;
  page: string;
  endpoints: Endpoint[];
}

export interface Reference {
  introduction: string;
  nouns: Noun[];
  /** Follows a reference within the document. */
  deref: (schema: Schema) => Schema;
}

const TITLES: Readonly<Record<string, string>> = {
  auth: 'Credentials',
  oauth: 'OAuth',
  'ssh-keys': 'SSH keys',
  agents: 'Directory of agents',
};
/** The nouns in the order in which a newcomer needs them. */
const ORDER = [
  'auth',
  'account',
  'catalog',
  'billing',
  'ssh-keys',
  'servers',
  'webhooks',
  'messages',
  'oauth',
  'agents',
  'transparency',
];

/** Words that are not written as they stand in the name of an operation. */
const WRITTEN: Readonly<Record<string, string>> = {
  ...{ api: 'API', oauth: 'OAuth', os: 'OS', ssh: 'SSH', topup: 'top-up', topups: 'top-ups', totp: 'TOTP', vps: 'VPS' },
};
/** `AddSshKey` → `Add SSH key`. */
function titleOf(name: string): string {
  const words = kebab(name).split('-');
  const title = words.map((word) => WRITTEN[word] ?? word).join(' ');
  return title[0]!.toUpperCase() + title.slice(1);
}

const kebab = (name: string): string => name.replace(/(?<=[a-z])(?=[A-Z])/g, '-').toLowerCase();
const rankOf = (name: string): number => ORDER.indexOf(name) + 1 || ORDER.length + 1;

export type Values = Record<string, unknown>;

/** The input of the example: the required parameters by their place, and the body. */
export function inputOf({ parameters, body }: Endpoint): { path: Values; query: Values; body: Values } {
  const required = (place: string): Values =>
    Object.fromEntries(
      parameters.flatMap((one) => (one.in === place && one.required ? [[one.name, one.example]] : [])),
    );
  return { path: required('path'), query: required('query'), body: { ...(body?.example as Values | undefined) } };
}

/** Whether the operation takes forms, as OAuth does. */
export const isForm = ({ body }: Endpoint): boolean =>
  body?.types.includes('application/x-www-form-urlencoded') ?? false;

/** @param document of `openapi` */
export function referenceOf(document: unknown, operations: readonly Operation[]): Reference {
  const { info, tags, paths, components } = document as Document;
  const resolved = <T>(value: T | { $ref: string }): T => {
    const { $ref } = value as { $ref?: string };
    if (!$ref) return value as T;
    const [, , section, name] = $ref.split('/');
    return { ...(components[section!]![name!] as T), ...without$ref(value as object) };
  };
  const byName = new Map(operations.map((operation) => [operation.name, operation]));
  const endpoints = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) =>
      endpointOf(method, path, described, resolved, byName.get(described.operationId)!),
    ),
  );
  const nouns = tags
    .map(({ name, description }) => ({
      name,
      title: TITLES[name] ?? name[0]!.toUpperCase() + name.slice(1),
      description,
      page: `/docs/api/${name}`,
      endpoints: endpoints.filter(({ noun }) => noun === name),
    }))
    .sort((a, b) => rankOf(a.name) - rankOf(b.name));
  return { introduction: info.description, nouns, deref: resolved };
}

const without$ref = ({ $ref, ...rest }: { $ref?: string }): object => rest;

function endpointOf(
  method: string,
  path: string,
  described: Described,
  resolved: <T>(value: T | { $ref: string }) => T,
  operation: Operation,
): Endpoint {
  const { operationId: name, tags, summary, description, parameters = [], requestBody, responses } = described;
  const [success] = Object.entries(responses).filter(([status]) => status.startsWith('2'));
  const answer = success ? resolved(success[1]).content : undefined;
  const errors = Object.entries(responses).filter(([status]) => !status.startsWith('2'));
  const [media] = Object.values(requestBody?.content ?? {});
  return {
    name,
    noun: tags[0]!,
    method: method.toUpperCase(),
    path,
    page: `/docs/api/${tags[0]}/${kebab(name)}`,
    title: titleOf(name),
    summary,
    description,
    scope: described['x-scope'],
    isPlanned: described['x-availability'] === 'PLANNED',
    parameters: parameters.map(resolved),
    body: requestBody && {
      types: Object.keys(requestBody.content),
      schema: media?.schema ?? {},
      example: media?.example,
      isRequired: requestBody.required,
    },
    credential: credentialOf(described),
    answer: {
      schema: answer?.['application/json']?.schema,
      example: answer?.['application/json']?.example,
      otherTypes: Object.keys(answer ?? {}).filter((type) => type !== 'application/json'),
    },
    errors: errors.map(([status, response]) => ({
      status,
      codes: Object.keys(resolved(response).content?.['application/json']?.examples ?? {}),
    })),
    tool: operation.tool?.name,
    confirmed: operation.tool?.confirm,
  };
}

/** A client sends its secret with a form. Without one, the Bearer token is the question itself (RFC 7662). */
function credentialOf({ security, requestBody }: Described): Endpoint['credential'] {
  const schemes = security.flatMap((one) => Object.keys(one));
  if (schemes.includes('client')) return requestBody ? 'client' : 'bearer';
  const isOptional = security.some((one) => !Object.keys(one).length);
  return schemes.includes('bearer') && !isOptional ? 'bearer' : undefined;
}
