/** Reads the input of a request: parameters in the path, the query and the headers, and the body. */
import type { FastifyRequest } from 'fastify';
import { type GraphQLInputType, getNullableType, isListType } from 'graphql';
import { ApiError, type ErrorCode, type FieldError, withoutSecrets } from '../../schema/index.ts';
import { ERRORS_MAX, refusal } from '../compile/details.ts';
import { isRecord } from '../compile/inputs.ts';
import { inputSchema } from '../compile/json-schema.ts';
import { snake } from '../compile/names.ts';
import type { Operation } from '../compile/operation.ts';
import type { Parameter } from '../compile/parameters.ts';
import type { Caller, Values } from '../compile/run.ts';
import { STYLES } from '../compile/styles.ts';
import { meant } from '../compile/synonyms.ts';
import { meantByWord, noteWord, refuseBoth } from '../compile/words.ts';

/** Reads the parameters by variable. @throws ApiError not_found or invalid_query */
export function parameterReader({ parameters, http }: Operation): (request: FastifyRequest) => Values {
  const parametersIn = (location: Parameter['in']) =>
    parameters
      .filter((parameter) => parameter.in === location)
      .map((parameter) => ({ ...parameter, decode: decoder(parameter) }));
  const [inPath, inHeaders] = [parametersIn('path'), parametersIn('header')];
  const { lenient } = STYLES[http!.style];
  const inQuery = new Map(parametersIn('query').map((parameter) => [parameter.name, parameter]));
  return (request) => {
    const values: Values = {};
    for (const { name, variable, decode } of inPath) {
      const text = (request.params as Record<string, string>)[name]!;
      if (text.includes('\0')) throw new ApiError('not_found');
      values[variable] = decode(text);
    }
    const query = request.query as Record<string, string | string[]>;
    for (const word in query) {
      const name = meantByWord(word, inQuery);
      if (name !== undefined) {
        const { variable, decode } = inQuery.get(name)!;
        refuseBoth(query, word, name, 'invalid_query');
        values[variable] = decode(query[word]!);
        if (word !== name) noteWord(values, name, word);
      } else if (!lenient) throw unknownParameters(query, [...inQuery.keys()]);
    }
    for (const { header, variable, decode } of inHeaders) {
      const text = request.headers[header!.toLowerCase()];
      if (text !== undefined) values[variable] = decode(text);
    }
    return values;
  };
}

/** The error for query parameters that do not exist. @param names those that do */
export function unknownParameters(query: object, names: readonly string[]): ApiError {
  const unknown = Object.keys(query).filter((name) => !names.includes(name));
  const errors = unknown.slice(0, ERRORS_MAX).map((name): FieldError => {
    const field = withoutSecrets(name.toWellFormed().replaceAll('\0', '�').slice(0, 200));
    const message = `There is no query parameter ${field}.${meant(field, names)}`;
    return { field, code: 'unknown_field', message };
  });
  return refusal(errors, 'invalid_query');
}

/** Reads the body: an object, or nothing. @throws ApiError validation_failed, unknown_field, or the code of the style */
export function bodyReader({ input, http }: Operation): (request: FastifyRequest) => unknown {
  const { lenient, singles, refusal: code } = STYLES[http!.style];
  const fields = Object.values(input?.type.getFields() ?? {});
  const names = new Set(fields.map(({ name }) => snake(name)));
  const lists = fields.filter(({ type }) => !singles && isListType(getNullableType(type)));
  const arrays = lists.map(({ name }) => snake(name));
  return ({ body }) => {
    if (body === undefined) return undefined;
    if (!isRecord(body)) throw new ApiError(code ?? 'validation_failed', 'The body must be an object.');
    requireArrays(body, arrays, code);
    if (lenient) return Object.fromEntries(Object.entries(body).filter(([name]) => names.has(name)));
    if (input) return body;
    const message = 'The operation takes no body.';
    const unknown = Object.keys(body).slice(0, ERRORS_MAX);
    const errors = unknown.map((field) => ({ field, code: 'unknown_field', message }));
    if (errors.length) throw new ApiError('unknown_field', message, { errors });
    return undefined;
  };
}

/** @throws ApiError with the given code if a named member is present and not an array */
function requireArrays(body: Values, names: readonly string[], code: ErrorCode | undefined): void {
  const errors = names
    .filter((name) => !Array.isArray(body[name] ?? []))
    .map((field) => ({ field, code: 'wrong_type', message: `${field} must be an array.` }));
  if (errors.length) throw refusal(errors, code);
}

/** Converts a text to a value of its type. An invalid text stays as it is, so that GraphQL refuses it. */
type Decode = (text: string | readonly string[]) => unknown;

function decoder({ type }: Pick<Parameter, 'type'>): Decode {
  const bare = getNullableType(type);
  if (!isListType(bare)) return single(type);
  // Callers may write a list as `?status=a&status=b` or `?status=a,b`.
  const decodeItem = single(bare.ofType);
  return (text) => [text].flat().flatMap((part) => part.split(',').map(decodeItem));
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
 * Receives each mutating request with its status, also after a refusal. It gets the template of the path and no input. It
 * never throws.
 */
export type AuditRequest = (
  caller: Pick<Caller, 'viewer' | 'requestId'>,
  request: { method: string; path: string; status: number },
) => void;
