/**
 * Errors as callers of GraphQL see them. Each has a code in its extensions. The code is one of the
 * catalogue, or one that GraphQL servers share, such as GRAPHQL_PARSE_FAILED.
 */
import {
  type DocumentNode,
  type ExecutionArgs,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  parse,
  specifiedRules,
  type ValidationRule,
  validate,
} from 'graphql';
import type { SubscribePayload } from 'graphql-ws';
import type { Plugin } from 'graphql-yoga';
import { apiErrorOf, causesOf } from '../../schema/index.ts';
import { plainTerms } from '../compile/terms.ts';
import { type Log, shownError } from '../http/errors.ts';
import { limitsRule, TOKENS_MAX } from './limits.ts';

/** Turns a thrown value into an error that the caller may see. */
export type Mask = (error: unknown) => GraphQLError;

/** @param log receives faults: errors that neither the catalogue nor GraphQL knows */
export const masking =
  (log: Log): Mask =>
  (error) => {
    if (!isGraphqlsOwn(error)) {
      const { message, extensions } = shownError(error, (line) => log({ ...operationOf(error), ...line }));
      return copy(error instanceof GraphQLError ? error : undefined, plainTerms(message), extensions);
    }
    // Without a code, GraphQL has refused an argument or a variable.
    const { code = 'BAD_USER_INPUT', http } = error.extensions;
    return copy(error, shortened(error), { code, ...(http !== undefined && { http }) });
  };

/** Characters of a message of GraphQL, and errors about a document. GraphQL repeats values of the caller in each. */
const [MESSAGE_MAX, ERRORS_MAX] = [500, 5];
const shortened = ({ message }: GraphQLError): string =>
  message.length > MESSAGE_MAX ? `${message.slice(0, MESSAGE_MAX)}…` : message;

/** The root field of an error. */
function operationOf(error: unknown): { operation?: string } {
  const [field] = (error instanceof GraphQLError && error.path) || [];
  return field === undefined ? {} : { operation: String(field) };
}

/** The mask for a WebSocket, which has neither status nor headers. */
export const maskingWithoutHttp =
  (mask: Mask): Mask =>
  (error) => {
    const masked = mask(error);
    const { http: _, ...extensions } = masked.extensions;
    return copy(masked, masked.message, extensions);
  };

/** Whether GraphQL itself refuses a document, a variable or a request. */
function isGraphqlsOwn(error: unknown): error is GraphQLError {
  if (apiErrorOf(error)) return false;
  const causes = causesOf(error);
  return causes.length > 0 && causes.every(({ name }) => name === 'GraphQLError');
}

function copy(error: GraphQLError | undefined, message: string, extensions: Record<string, unknown>): GraphQLError {
  const { nodes = null, source = null, positions = null, path = null } = error ?? {};
  return new GraphQLError(message, { nodes, source, positions, path, extensions });
}

/** Refuses unreadable HTTP requests. Yoga would answer them without a GraphQL error, or as a fault of the service. */
export const unreadableRequests: Plugin = {
  onRequestParse({ request, requestParser, setRequestParser }) {
    const isOperation = /^application\/((.+\+)?json|graphql)\b/i.test(request.headers.get('content-type') ?? '');
    // A browser sends a form from any page without asking first.
    if (request.method === 'POST' && !isOperation) throw badRequest('Send the request as application/json.', 415);
    if (!requestParser) return;
    setRequestParser(async (given) => {
      try {
        return await requestParser(given);
      } catch (error) {
        throw error instanceof SyntaxError ? badRequest('The variables or extensions are not valid JSON.', 400) : error;
      }
    });
  },
};

const badRequest = (message: string, status: number) =>
  new GraphQLError(message, { extensions: { code: 'BAD_REQUEST', http: { status } } });

const NO_OPERATION = new GraphQLError('Could not determine what operation to execute.', {
  extensions: { code: 'OPERATION_RESOLUTION_FAILURE' },
});

/** Validates a document, but only within the limits: other rules compare its fields in pairs. */
export function refusalsOf(
  schema: GraphQLSchema,
  document: DocumentNode,
  rules: readonly ValidationRule[],
): readonly GraphQLError[] {
  const tooLarge = validate(schema, document, [limitsRule]);
  if (tooLarge.length) return tooLarge;
  const wrong = validate(schema, document, rules, { maxErrors: ERRORS_MAX });
  return wrong.map((error) => copy(error, shortened(error), error.extensions));
}

/** The valid documents of WebSockets by their texts, as long as an operation uses them. Watchers with one text share them. */
const VALID = new Map<string, WeakRef<DocumentNode>>();
const unused = new FinalizationRegistry((text: string) => {
  if (!VALID.get(text)?.deref()) VALID.delete(text);
});

/**
 * Reads an operation from a WebSocket, with the limits of HTTP. Errors are an answer, and the socket stays open.
 * @returns the operation, or its errors
 */
export function readOperation(
  schema: GraphQLSchema,
  { query, operationName, variables }: SubscribePayload,
): Omit<ExecutionArgs, 'contextValue'> | GraphQLError[] {
  let document = VALID.get(query)?.deref();
  if (!document) {
    try {
      document = parse(query, { maxTokens: TOKENS_MAX });
    } catch (error) {
      return [copy(error as GraphQLError, shortened(error as GraphQLError), { code: 'GRAPHQL_PARSE_FAILED' })];
    }
    const wrong = refusalsOf(schema, document, specifiedRules);
    if (wrong.length) return wrong.map((error) => copy(error, error.message, { code: 'GRAPHQL_VALIDATION_FAILED' }));
    VALID.set(query, new WeakRef(document));
    unused.register(document, query);
  }
  if (!getOperationAST(document, operationName)) return [NO_OPERATION];
  return { schema, document, operationName, variableValues: variables };
}
