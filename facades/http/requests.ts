/** What a request brings: parameters of the path, the query and the headers, which arrive as text, and a body. */

import type { FastifyRequest } from 'fastify';
import { type GraphQLInputType, getNullableType, isListType } from 'graphql';
import { ApiError, type ErrorCode, type FieldError } from '../../schema/index.ts';
import { refusal } from '../compile/details.ts';
import { isRecord } from '../compile/inputs.ts';
import { inputSchema } from '../compile/json-schema.ts';
import { snake, suggestion } from '../compile/names.ts';
import type { Operation } from '../compile/operation.ts';
import type { Parameter } from '../compile/parameters.ts';
import type { Caller, Values } from '../compile/run.ts';
import { STYLES } from '../compile/styles.ts';

/** Reads the parameters, by the names of their variables. @throws ApiError not_found or invalid_query */
export function parameterReader({ parameters, http }: Operation): (request: FastifyRequest) => Values {
  const entries = (place: Parameter['in']) =>
    parameters.filter((one) => one.in === place).map((one) => ({ ...one, decode: decoder(one) }));
  const [paths, headers] = [entries('path'), entries('header')];
  const { lenient } = STYLES[http!.style];
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
      if (known) values[known.variable] = known.decode(query[name]!);
      else if (!lenient) throw unknownParameters(query, queries);
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

/** The body, if it is an object or absent. @throws ApiError validation_failed, unknown_field, or the code of the style */
export function bodyReader({ input, http }: Operation): (request: FastifyRequest) => unknown {
  const { lenient, singles, refusal: code } = STYLES[http!.style];
  const fields = Object.values(input?.type.getFields() ?? {});
  const known = new Set(fields.map(({ name }) => snake(name)));
  const lists = fields.filter(({ type }) => !singles && isListType(getNullableType(type)));
  const arrays = lists.map(({ name }) => snake(name));
  return ({ body }) => {
    if (body === undefined) return undefined;
    if (!isRecord(body)) throw new ApiError(code ?? 'validation_failed', 'The body must be an object.');
    requireArrays(body, arrays, code);
    if (lenient) return Object.fromEntries(Object.entries(body).filter(([name]) => known.has(name)));
    if (input) return body;
    const unknown = Object.keys(body).map((field) => ({ field, code: 'unknown_field', message: 'There is no body.' }));
    if (unknown.length) throw new ApiError('unknown_field', 'The operation takes no body.', { errors: unknown });
    return undefined;
  };
}

/** @throws ApiError with that code if one of the members is neither absent nor an array */
function requireArrays(body: Values, names: readonly string[], code: ErrorCode | undefined): void {
  const wrong = names.filter((name) => !Array.isArray(body[name] ?? []));
  const errors = wrong.map((field) => ({ field, code: 'wrong_type', message: `${field} must be an array.` }));
  if (errors.length) throw refusal(errors, code);
}

/** Text as a value of its type. What does not fit stays as it is, so that GraphQL refuses it. */
type Decode = (text: string | readonly string[]) => unknown;

function decoder({ type }: Pick<Parameter, 'type'>): Decode {
  const bare = getNullableType(type);
  if (!isListType(bare)) return single(type);
  // A list may be written `?status=a&status=b` or `?status=a,b`.
  const one = single(bare.ofType);
  return (text) => [text].flat().flatMap((part) => part.split(',').map(one));
}

function single(type: GraphQLInputType): Decode {
  switch (inputSchema(type).type) {
    case 'integer':
    case 'number':
      return (text) => (typeof text === 'string' && /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text);
    case 'boolean':
      return (text) => (text === 'true' ? true : text === 'false' ? false : text);
    default:
      return (text) => text;
  }
}

/**
 * Told of a mutating request when it has been answered, whatever the answer was: the method, the template of its path,
 * and the status; nothing that was sent. Never throws.
 */
export type AuditRequest = (
  caller: Pick<Caller, 'viewer' | 'requestId'>,
  request: { method: string; path: string; status: number },
) => void;
