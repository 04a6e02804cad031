/** The REST facade: a route for each operation with `@http`. */
import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError, type Context, type FieldError, type Viewer } from '../schema/index.ts';
import { checker, refusal } from './details.ts';
import { snake, suggestion } from './names.ts';
import type { Operation } from './operations.ts';
import type { Parameter } from './parameters.ts';
import { type Caller, type Refuse, requireScopes, runner, type Values } from './run.ts';
import { inputSchema, parameterSchema } from './schemas.ts';
import { decoder } from './texts.ts';
import { isRecord } from './wire.ts';

/** The viewer behind an Authorization header. @throws ApiError if it is no valid Bearer credential */
export type Authenticate = (authorization: string | undefined) => Promise<Viewer | null>;
export type ContextOf = (caller: Caller) => Context;

export interface RestOptions {
  operations: readonly Operation[];
  authenticate: Authenticate;
  contextOf: ContextOf;
}

declare module 'fastify' {
  interface FastifyRequest {
    viewer: Viewer | null;
  }
}

/** Expects an instance on which `request.viewer` is decorated. */
export function rest(app: FastifyInstance, { operations, authenticate, contextOf }: RestOptions): void {
  for (const operation of operations) {
    if (!operation.http) continue;
    const { method, path, maxAgeSeconds } = operation.http;
    const run = runner(operation, refuser(operation));
    const read = reader(operation);
    const bodyOf = bodyReader(operation);
    const cacheControl = maxAgeSeconds && `public, max-age=${maxAgeSeconds}`;
    app.route({
      method,
      url: path.replace(/\{(\w+)\}/g, ':$1'),
      onRequest: guard(operation, authenticate),
      handler: async (request, reply) => {
        const values = read(request);
        const body = await run(values, bodyOf(request), contextOf(callerOf(request, reply)));
        const text = JSON.stringify(body);
        return cacheControl ? cached(request, reply, text, cacheControl) : text;
      },
    });
  }
}

/** Who asks, and whether they may: before anything that they sent is looked at. */
function guard({ scopes, http }: Operation, authenticate: Authenticate) {
  return async (request: FastifyRequest) => {
    const { authorization } = request.headers;
    if (authorization !== undefined) request.viewer = await authenticate(authorization);
    if (scopes.length) requireScopes(scopes, request.viewer);
    if (http!.status === 'PLANNED') throw new ApiError('endpoint_planned');
  };
}

function callerOf(request: FastifyRequest, { raw }: FastifyReply): Caller {
  const gone = new AbortController();
  raw.once('close', () => {
    if (!raw.writableFinished) gone.abort();
  });
  const userAgent = request.headers['user-agent'] ?? null;
  return { viewer: request.viewer, requestId: request.id, userAgent, signal: gone.signal };
}

/** An answer that everybody may keep: with an ETag, and 304 for who has it already (RFC 9110, section 13). */
export function cached(request: FastifyRequest, reply: FastifyReply, text: string, cacheControl: string) {
  const etag = `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`;
  reply.header('cache-control', cacheControl).header('etag', etag);
  const known = request.headers['if-none-match'];
  if (known === undefined || !(known === '*' || known.includes(etag))) return text;
  return reply.code(304).removeHeader('content-type').send();
}

/** Reads the parameters, by the names of their variables. @throws ApiError not_found or invalid_query */
function reader({ parameters }: Operation): (request: FastifyRequest) => Values {
  const entries = (place: Parameter['in']) =>
    parameters.filter((one) => one.in === place).map((one) => ({ ...one, decode: decoder(one) }));
  const [paths, headers] = [entries('path'), entries('header')];
  const queries = new Map(entries('query').map((one) => [one.name, one]));
  return (request) => {
    const values: Values = {};
    for (const { name, variable, decode } of paths) {
      const text = (request.params as Record<string, string>)[name]!;
      if (text.includes('\0')) throw new ApiError('not_found');
      values[variable] = decode(text);
    }
    const query = request.query as Record<string, string | string[]>;
    for (const name in query) {
      const known = queries.get(name);
      if (!known) throw unknownParameters(query, queries);
      values[known.variable] = known.decode(query[name]!);
    }
    for (const { header, variable, decode } of headers) {
      const text = request.headers[header!.toLowerCase()];
      if (text !== undefined) values[variable] = decode(text);
    }
    return values;
  };
}

function unknownParameters(query: object, known: ReadonlyMap<string, unknown>): ApiError {
  const errors = Object.keys(query).flatMap((name): FieldError[] => {
    if (known.has(name)) return [];
    const field = name.toWellFormed().replaceAll('\0', '�').slice(0, 200);
    const message = `There is no query parameter ${field}.${suggestion(field, [...known.keys()])}`;
    return [{ field, code: 'unknown_field', message }];
  });
  return refusal(errors, 'invalid_query');
}

/** The body, if it is an object or absent. @throws ApiError validation_failed or unknown_field */
function bodyReader({ input }: Operation): (request: FastifyRequest) => unknown {
  return ({ body }) => {
    if (body === undefined) return undefined;
    if (!isRecord(body)) throw new ApiError('validation_failed', 'The body must be an object.');
    if (input) return body;
    const unknown = Object.keys(body).map((field) => ({ field, code: 'unknown_field', message: 'There is no body.' }));
    if (unknown.length) throw new ApiError('unknown_field', 'The operation takes no body.', { errors: unknown });
    return undefined;
  };
}

/** What is wrong: with the path it is 404, with the query or a header 400, with the body 422. */
function refuser({ parameters, input }: Operation): Refuse {
  const checks = parameters.map((parameter) => ({ parameter, check: parameterChecker(parameter) }));
  const checkBody = input && checker(inputSchema(input.type));
  const among = (place: Parameter['in'], values: Values) =>
    checks.flatMap(({ parameter, check }) => (parameter.in === place ? check(values[parameter.variable]) : []));
  const placeOf = ({ field }: FieldError) =>
    parameters.find(({ name }) => name === snake(field.split('.')[0]!))?.in ?? 'body';
  return (values, body, fallback) => {
    const found = {
      path: among('path', values),
      query: among('query', values),
      header: among('header', values),
      body: checkBody?.(body ?? {}) ?? [],
    };
    if (!Object.values(found).some(({ length }) => length))
      for (const error of fallback()) found[placeOf(error)].push(error);
    if (found.path.length) return new ApiError('not_found');
    if (found.query.length) return refusal(found.query, 'invalid_query');
    return found.header.length ? refusal(found.header, 'invalid_header') : refusal(found.body);
  };
}

function parameterChecker(parameter: Parameter): (value: unknown) => FieldError[] {
  const field = parameter.header ?? parameter.name;
  const check = checker(parameterSchema(parameter), field);
  return (value) => {
    if (value !== undefined) return check(value);
    return parameter.required ? [{ field, code: 'required', message: `${field} is required.` }] : [];
  };
}
