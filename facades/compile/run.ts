/** Runs an operation: maps its input, executes its document, and maps its answer. The preparation happens once. */
import {
  type DocumentNode,
  type ExecutionResult,
  type GraphQLError,
  type GraphQLInputType,
  validateInputValue,
} from 'graphql';
import {
  ApiError,
  apiErrorOf,
  atTurnOf,
  type Context,
  type CredentialEnd,
  type CredentialWatch,
  ERRORS,
  type FieldError,
  readAtTurnOf,
  requireActive,
  shortened,
  type Span,
  type Viewer,
} from '../../schema/index.ts';
import { aliasing, inputMapper, isRecord } from './inputs.ts';
import { snake } from './names.ts';
import type { Operation } from './operation.ts';
import { wholePage } from './outputs.ts';
import { type Run, sharing } from './sharing.ts';
import { inTheirWords } from './words.ts';

export type Values = Record<string, unknown>;
export type { Run };
/** Makes the error for an input that GraphQL refused. `fallback` returns the errors that GraphQL found. */
export type Refuse = (values: Values, body: unknown, fallback: () => FieldError[]) => ApiError;

/** The caller of an operation, as resolvers need it. */
export interface Caller {
  viewer: Viewer | null;
  requestId: string;
  userAgent: string | null;
  /** The network address of the caller. The service never stores it. */
  address: string | null;
  /** The name of the service as the caller writes it: the header Host. */
  host?: string | undefined;
  /** Sets a header of the response. Absent without HTTP. */
  setHeader?: (name: string, value: string) => void;
  /** Aborts when the caller disconnects. */
  signal: AbortSignal;
}

/** Opens the span of a call, for an operator who traces. */
export type OpenSpan = () => Span;

/** Does the work within the span, if there is one. */
export const withinSpan = <T>(span: Span | null | undefined, work: () => T): T => (span ? span.within(work) : work());

/** An answered call, without its input and its caller. */
export interface Answered {
  /** `http` has the paths beside REST and the site. */
  facade: 'rest' | 'mcp' | 'graphql' | 'site' | 'http';
  /** The name of an operation or of a root field, or the template of another path. */
  operation: string;
  status: number;
  ms: number;
  requestId: string;
  /** It ends with the answer. */
  span: Span | undefined;
}
export type OnAnswer = (answered: Answered) => void;

/**
 * Returns the viewer of an Authorization header.
 * @throws ApiError if the Bearer credential is not valid from this address
 */
export type Authenticate = (authorization: string | undefined, address: string | null) => Promise<Viewer | null>;
export type ContextOf = (caller: Caller) => Context;
/** Calls `ended` when the credential of the viewer ends, or may have ended. */
export type OnCredentialEnd = (viewer: Viewer, ended: (how: CredentialEnd) => void) => CredentialWatch;

/**
 * Refuses a viewer who lacks a scope or is suspended. Facades call it before they read any input.
 * @throws ApiError missing_credential, insufficient_scope (RFC 6750) or account_suspended
 */
export function permit({ scopes, activeOnly }: Operation, viewer: Viewer | null): void {
  for (const scope of scopes) {
    if (!viewer) throw new ApiError('missing_credential');
    if (!viewer.scopes.has(scope))
      throw new ApiError('insufficient_scope', `The credential lacks the scope ${scope}.`, { requiredScope: scope });
  }
  if (activeOnly) requireActive(viewer);
}

export function runner(operation: Operation, refuse: Refuse): Run {
  const { answer, input } = operation;
  const { toApi } = answer;
  const toVariables = variablesOf(operation);
  const unalias = input && aliasing(input.type);
  const answerIn = pick(answer.path);
  return sharing(operation, async (values, body, context) => {
    if (unalias && isRecord(body)) unalias(body);
    const variables = toVariables(values, body);
    const { data, errors } = await (await compiled(operation))(variables, context);
    if (data === undefined)
      throw inTheirWords(
        refuse(values, body, () => graphqlErrors(operation, variables)),
        values,
        body,
      );
    if (errors) throw inTheirWords(named(operation, values, errors.find(apiErrorOf) ?? errors[0]!), values, body);
    const result = answerIn(data as Values);
    if (result === null || result === undefined) throw noSuch(operation, values);
    const mapped = toApi ? toApi(result) : result;
    return answer.page ? wholePage(mapped) : mapped;
  });
}

/** The error, with the id of a thing that does not exist. */
function named(operation: Operation, values: Values, error: GraphQLError): Error {
  const { code, message } = apiErrorOf(error) ?? {};
  return code === 'not_found' && message === ERRORS.not_found[1] ? noSuch(operation, values) : error;
}

/** The refusal of an id. It names the operation that lists those that exist. */
export function noSuch({ parameters, listedBy }: Operation, values: Values): ApiError {
  const id = parameters.findLast((parameter) => parameter.in === 'path');
  if (!id) return new ApiError('not_found');
  const shown = shortened(String(values[id.variable] ?? ''));
  const where = listedBy ? ` See {${listedBy}}.` : '';
  return new ApiError('not_found', `There is no ${id.name} "${shown}".${where}`);
}

type Execute = (variables: Values, context: Context) => ExecutionResult | Promise<ExecutionResult>;
const COMPILED = new WeakMap<DocumentNode, Promise<Execute>>();

/**
 * Compiles a document to a function at its first call, once for REST and MCP together. It takes a fifth of the time of
 * GraphQL's `execute`, which walks the document at each call.
 */
export function compiled(operation: Operation): Promise<Execute> {
  const existing = COMPILED.get(operation.document);
  if (existing) return existing;
  const execute = compile(operation);
  COMPILED.set(operation.document, execute);
  return execute;
}

async function compile({ schema, document, name, kind }: Operation): Promise<Execute> {
  const { compileQuery, isCompiledQuery } = await import('graphql-jit');
  const query = compileQuery<Values, Values>(schema, document, name);
  if (!isCompiledQuery(query)) throw new Error(`${name} cannot be compiled: ${query.errors?.join(' ')}`);
  const atTurn = kind === 'query' ? readAtTurnOf : atTurnOf;
  return (variables, context) => atTurn(context, (context) => query.query(undefined, context, variables));
}

/** Returns the value at a path of keys; null if it or a value above it is null. */
function pick(path: readonly string[]): (data: Values | null) => unknown {
  const [only] = path;
  if (path.length === 1) return (data) => data?.[only!];
  return (data) => path.reduce<unknown>((value, key) => value && (value as Values)[key], data);
}

/**
 * Combines parameters and body as variables, and adds the defaults, which a compiled document does not apply. The given
 * objects stay unchanged.
 */
function variablesOf({ parameters, input }: Operation): (values: Values, body: unknown) => Values {
  const mapped = parameters.flatMap(({ variable, type }) => {
    const map = inputMapper(type);
    return map ? [[variable, map] as const] : [];
  });
  const defaults = Object.fromEntries(
    parameters.flatMap(({ variable, default: value }) => (value === undefined ? [] : [[variable, value]])),
  );
  const mapBody = input && inputMapper(input.type)!;
  return (values, body) => {
    const variables: Values = { ...defaults, ...values };
    for (const [variable, map] of mapped) if (variable in variables) variables[variable] = map(variables[variable]);
    if (mapBody && (body !== undefined || input.required)) variables[input.variable] = mapBody(body ?? {});
    return variables;
  };
}

/** The errors that GraphQL finds in the variables, such as those of a scalar beyond its JSON Schema. */
function graphqlErrors({ parameters, input }: Operation, variables: Values): FieldError[] {
  const errors: FieldError[] = [];
  const check = (value: unknown, type: GraphQLInputType, prefix: string[]) =>
    validateInputValue(value, type, (error, path) => {
      const field = [...prefix, ...path.map((key) => snake(String(key)))].join('.');
      errors.push({ field, code: 'wrong_format', message: `${field || 'The body'}: ${withoutValue(error)}` });
    });
  for (const { name, variable, type, required } of parameters)
    if (required || variables[variable] !== undefined) check(variables[variable], type, [name]);
  if (input && variables[input.variable] !== undefined) check(variables[input.variable], input.type, []);
  return errors;
}

/** Removes the refused value from a message of GraphQL. Messages of Freehold's scalars have none. */
const withoutValue = ({ message }: GraphQLError): string =>
  message
    .replace(/[,;]? found: .*$/is, '.')
    .replace(/( cannot represent [^:]*): .*$/s, '$1.')
    .replace(/^Value ".*" does/s, 'The value does');
