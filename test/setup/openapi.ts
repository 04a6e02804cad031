/**
 * Checks every answer of a REST test against the OpenAPI document: its endpoint, status, content type, headers and body. The
 * body may have no member that the document lacks. test/contract.test.ts proves that the service serves this document.
 */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { readOperations } from '../../facades/compile/read.ts';
import { openapi } from '../../facades/openapi/document.ts';
import { schema } from '../../schema/index.ts';

// biome-ignore lint/suspicious/noExplicitAny: the test knows the form of the document
export type Document = any;

/** A received answer. */
export interface Reply {
  status: number;
  headers: Headers;
  text: string;
}

/** @throws Error that names the difference between the answer and the document */
export type Check = (method: string, path: string, reply: Reply) => void;

/** Headers of HTTP itself, and headers for browsers in every answer. */
const PLAIN = new Set([
  'access-control-expose-headers',
  'allow',
  'connection',
  'content-length',
  'content-security-policy',
  'content-type',
  'date',
  'keep-alive',
  'referrer-policy',
  'strict-transport-security',
  'transfer-encoding',
  'x-content-type-options',
]);
/** The response of paths without an endpoint, which count for no rate limit. */
const NOWHERE = ['components', 'responses', 'NotFound'];
/** Paths that have no document of an operation. */
const APART = /^\/v1\/(openapi\.json|oauth\/authorize)$/;

/** Whether a path can be decoded and is short enough to reach an endpoint. */
function readable(pathname: string): boolean {
  try {
    return decodeURIComponent(pathname)
      .split('/')
      .every(({ length }) => length <= 100);
  } catch {
    return false;
  }
}

/** The problems of a value with the schema at a place of the document. */
type ProblemsOf = (place: readonly string[], value: unknown) => string[];

export function checkerOf(document: Document): Check {
  const problemsOf = validatorOf(document);
  const routes = routesOf(document);
  return (method, path, reply) => {
    const { pathname } = new URL(path, 'http://localhost');
    if (!pathname.startsWith('/v1/') || APART.test(pathname) || method === 'OPTIONS') return;
    const verb = method === 'HEAD' ? 'get' : method.toLowerCase();
    const route = routes.find(({ template, verbs }) => template.test(pathname) && verbs.has(verb));
    const routed = route && readable(pathname);
    const place = routed
      ? placeOf(document, ['paths', route.path, verb, 'responses'], reply.status)
      : reply.status === 404 && NOWHERE;
    const problems = place
      ? [
          ...headerProblems(document, place, reply.headers, problemsOf),
          ...(method === 'HEAD' || reply.status === 304 ? [] : bodyProblems(document, place, reply, problemsOf)),
        ]
      : [`${route ? 'the endpoint' : 'a path without an endpoint'} has no status ${reply.status}`];
    if (!problems.length) return;
    const answered = `${method} ${route?.path ?? pathname} answered ${reply.status}: ${reply.text.slice(0, 2000)}`;
    throw new Error(`${answered}\nThe OpenAPI document has it otherwise:\n  ${problems.join('\n  ')}`);
  };
}

/** Compiles each schema once. */
function validatorOf(document: Document): ProblemsOf {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats.default(ajv);
  ajv.addSchema(closed(document), 'document');
  const compiled = new Map<string, ValidateFunction>();
  return (place, value) => {
    const key = place.join(' ');
    const validate = compiled.get(key) ?? ajv.getSchema(`document#/${pointerTo(place)}`)!;
    compiled.set(key, validate);
    validate(value);
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath || 'the value'} ${message} ${JSON.stringify(params)}`,
    );
  };
}

const pointerTo = (place: readonly string[]): string =>
  place.map((step) => encodeURIComponent(step.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/');

/** Closes all objects of the document. Clients ignore unknown members; tests must not. */
export function closed(schema: Document): Document {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]));
  return schema.type === 'object' && schema.properties && !('additionalProperties' in schema)
    ? { ...inner, additionalProperties: false }
    : inner;
}

/** The endpoints. Paths without parameters come first. */
function routesOf(document: Document) {
  return Object.entries<Document>(document.paths)
    .map(([path, methods]) => ({
      path,
      template: new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`),
      verbs: new Set(Object.keys(methods)),
    }))
    .sort((a, b) => Number(a.path.includes('{')) - Number(b.path.includes('{')));
}

const at = (document: Document, place: readonly string[]): Document =>
  place.reduce((inner, key) => inner[key], document);

/** Returns the place of the response of a status, or undefined without one. */
function placeOf(document: Document, place: string[], status: number): string[] | undefined {
  const response = at(document, place)[status];
  return response && (response.$ref ? response.$ref.slice(2).split('/') : [...place, String(status)]);
}

function headerProblems(document: Document, place: string[], headers: Headers, problemsOf: ProblemsOf): string[] {
  const problems: string[] = [];
  const documented = Object.entries<Document>(at(document, place).headers ?? {});
  const names = new Set(documented.map(([name]) => name.toLowerCase()));
  for (const name of headers.keys())
    if (!names.has(name) && !PLAIN.has(name)) problems.push(`the header ${name} is not documented`);
  for (const [name, { $ref }] of documented) {
    const header = $ref.slice(2).split('/');
    const { required, schema } = at(document, header);
    const text = headers.get(name);
    if (text === null && required && place !== NOWHERE) problems.push(`the header ${name} is missing`);
    if (text === null) continue;
    const value = schema.type === 'integer' ? Number(text) : text;
    problems.push(...problemsOf([...header, 'schema'], value).map((problem) => `the header ${name}: ${problem}`));
  }
  return problems;
}

function bodyProblems(document: Document, place: string[], { headers, text }: Reply, problemsOf: ProblemsOf): string[] {
  const type = headers.get('content-type')?.split(';')[0] ?? 'none';
  if (!at(document, place).content?.[type]) return [`the content type ${type} is not documented`];
  try {
    const body = /[/+]json$/.test(type) ? JSON.parse(text) : text;
    const codes = Object.keys(at(document, place).content[type].examples ?? {});
    const isListed = !codes.length || codes.includes(body.code);
    return [
      ...problemsOf([...place, 'content', type, 'schema'], body),
      ...(isListed ? [] : [`the response does not list the code ${body.code}`]),
    ];
  } catch (error) {
    return [`the body is no JSON: ${(error as Error).message}`];
  }
}

let service: Check | undefined;

/** Checks an answer of /v1. */
export const check: Check = (method, url, reply) => {
  service ??= checkerOf(openapi(readOperations(schema), 'http://localhost'));
  service(method, url, reply);
};

/** Calls `fetch` and checks answers of /v1. Use it for answers that end. */
export const checkedFetch: typeof fetch = async (input, init) => {
  const response = await fetch(input, init);
  const request = input instanceof Request ? input : { url: String(input), method: init?.method ?? 'GET' };
  const { status, headers } = response;
  check(request.method, request.url, { status, headers, text: await response.clone().text() });
  return response;
};
