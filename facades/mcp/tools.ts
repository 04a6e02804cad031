/** The tools: one for each operation with `@tool`, with the same rules and the same errors as REST. */
import type { CallToolResult, Tool } from '@modelcontextprotocol/server';
import type { Viewer } from '../../schema/index.ts';
import type { AuditRequest } from '../audit.ts';
import { checker, refusal } from '../details.ts';
import type { AnswerError } from '../errors.ts';
import { KEY_SCHEMA, type Once, runnerOnce } from '../idempotency.ts';
import { checkJson } from '../json.ts';
import type { Operation } from '../operations.ts';
import type { Authenticate, ContextOf } from '../rest.ts';
import { type Caller, permit, type Refuse, runner, type Values } from '../run.ts';
import { answerSchema, inputSchema, type JsonSchema, parameterSchema } from '../schemas.ts';

export interface ToolOptions {
  operations: readonly Operation[];
  authenticate: Authenticate;
  contextOf: ContextOf;
  answerError: AnswerError;
  /** Absent: idempotency keys are not honoured. */
  once?: Once | undefined;
  auditRequest?: AuditRequest;
}

/** Who calls a tool, and what counts the call. */
export interface ToolCaller extends Caller {
  count: Count;
}
/** Counts a call of that viewer. @throws ApiError rate_limited */
export type Count = (viewer: Viewer | null) => Promise<void>;

/** A tool: what tools/list says of it, and what tools/call does. A refusal is a result, never an exception. */
export interface McpTool {
  definition: Tool;
  call(args: Values, caller: ToolCaller): Promise<CallToolResult>;
}

export function toolsOf({ operations, ...options }: ToolOptions): McpTool[] {
  return operations.filter(({ tool }) => tool).map((operation) => toolOf(asTool(operation), options));
}

/** Without the parameters that are for REST alone. */
function asTool(operation: Operation): Operation {
  return { ...operation, parameters: operation.parameters.filter(({ tool }) => tool) };
}

function toolOf(operation: Operation, options: Omit<ToolOptions, 'operations'>) {
  const { contextOf, answerError, once } = options;
  const args = argumentsSchema(operation);
  const run = runner(operation, refuser(operation, args));
  const runOnce = runnerOnce(operation, run, once);
  const withoutKey = keyTaker(operation);
  const split = splitter(operation, checker(args));
  const audit = (caller: Caller, status: number) => {
    if (operation.kind === 'mutation')
      options.auditRequest?.(caller, { method: 'POST', path: `/mcp#${operation.tool!.name}`, status });
  };
  return {
    definition: definitionOf(operation, args),
    async call(
      { access_token: token = null, ...given }: Values,
      { count, ...caller }: ToolCaller,
    ): Promise<CallToolResult> {
      let viewer: Caller['viewer'] = null;
      try {
        // In the documented flow the new account's token is an argument, while the header may be of another account.
        viewer = token === null ? caller.viewer : await authenticated(options, String(token), caller.address, count);
        await count(viewer);
        permit(operation, viewer);
        checkJson(given);
        const { key, input } = withoutKey(given);
        const { values, body } = split(input);
        const context = contextOf({ ...caller, viewer });
        const answer =
          key === undefined
            ? result((await run(values, body, context)) as Values)
            : await runOnce(key, values, body, context).then(({ answer: text }) => result(JSON.parse(text), text));
        audit({ ...caller, viewer }, 200);
        return answer;
      } catch (error) {
        const { status, body } = answerError(error, caller.requestId);
        audit({ ...caller, viewer }, status);
        return { ...result(body), isError: true };
      }
    },
  };
}

const result = (content: Readonly<Values>, text = JSON.stringify(content)): CallToolResult => ({
  content: [{ type: 'text', text }],
  structuredContent: content,
});

/** A credential that is refused counts as none, as in REST. */
async function authenticated(
  { authenticate }: Pick<ToolOptions, 'authenticate'>,
  token: string,
  address: Caller['address'],
  count: Count,
) {
  try {
    return await authenticate(`Bearer ${token}`, address);
  } catch (error) {
    await count(null);
    throw error;
  }
}

/** Takes the idempotency key out of the arguments of a tool that has one. @throws ApiError validation_failed */
function keyTaker({ tool }: Operation): (given: Values) => { key: string | undefined; input: Values } {
  if (!tool!.keyed) return (input) => ({ key: undefined, input });
  const check = checker(KEY_SCHEMA, 'idempotency_key');
  return ({ idempotency_key: key = null, ...input }) => {
    const wrong = key === null ? [] : check(key);
    if (wrong.length) throw refusal(wrong);
    return { key: (key as string | null) ?? undefined, input };
  };
}

/** Parameters and the fields of the input object stand beside one another. */
function argumentsSchema({ parameters, input }: Operation): JsonSchema {
  const body = input ? inputSchema(input.type) : {};
  const required = [
    ...parameters.filter((parameter) => parameter.required).map(({ name }) => name),
    ...((body.required as string[] | undefined) ?? []),
  ];
  return {
    type: 'object',
    properties: {
      ...Object.fromEntries(parameters.map((parameter) => [parameter.name, parameterSchema(parameter)])),
      ...(body.properties as Values | undefined),
    },
    ...(required.length && { required }),
    additionalProperties: false,
  };
}

/** Sorts arguments into parameters and body. Null stands for an absent parameter. @throws ApiError unknown_field */
function splitter({ parameters, input }: Operation, check: ReturnType<typeof checker>) {
  const variables = new Map(parameters.map(({ name, variable }) => [name, variable]));
  return (given: Values): { values: Values; body: Values | undefined } => {
    const values: Values = {};
    const body: Values = {};
    for (const [name, value] of Object.entries(given)) {
      const variable = variables.get(name);
      if (!variable) body[name] = value;
      else if (value !== null) values[variable] = value;
    }
    if (!input && Object.keys(body).length) throw refusal(check(given));
    return { values, body: input && (input.required || Object.keys(body).length) ? body : undefined };
  };
}

/** All arguments are input, so that whatever is wrong with them is 422. */
function refuser({ parameters }: Operation, args: JsonSchema): Refuse {
  const check = checker(args);
  return (values, body, fallback) => {
    const given: Values = { ...(body as Values | undefined) };
    for (const { name, variable } of parameters) if (variable in values) given[name] = values[variable];
    const errors = check(given);
    return refusal(errors.length ? errors : fallback());
  };
}

const ACCESS_TOKEN = { type: 'string', description: 'A credential, instead of the Authorization header.' };

function definitionOf(operation: Operation, args: JsonSchema): Tool {
  const { name, title = titleOf(name), idempotent, destructive } = operation.tool!;
  const readOnly = operation.kind === 'query';
  const deletes = operation.http?.method === 'DELETE';
  const answer = answerSchema(operation);
  const properties = {
    ...(args.properties as Values),
    ...(operation.tool!.keyed && { idempotency_key: KEY_SCHEMA }),
    access_token: ACCESS_TOKEN,
  };
  return {
    name,
    title,
    description: operation.description,
    inputSchema: { ...args, properties } as unknown as Tool['inputSchema'],
    // Clients of 2025 check errors against it, too.
    outputSchema: {
      type: 'object',
      anyOf: [...((answer.anyOf as JsonSchema[] | undefined) ?? [answer]), ERROR],
    } as Tool['outputSchema'],
    annotations: {
      title,
      readOnlyHint: readOnly,
      destructiveHint: destructive ?? deletes,
      idempotentHint: idempotent ?? (readOnly || deletes),
      openWorldHint: false,
    },
  };
}

/** `get_catalog_item` → `Get catalog item`. */
const titleOf = (name: string): string => (name[0]!.toUpperCase() + name.slice(1)).replaceAll('_', ' ');

const ERROR: JsonSchema = {
  type: 'object',
  properties: {
    code: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    retryable: { type: 'boolean' },
  },
  required: ['code', 'status', 'detail', 'retryable'],
};
