/** The tools: one for each operation with `@tool`, with the same rules and the same errors as REST. */
import type { CallToolResult, InputRequiredResult, ServerContext } from '@modelcontextprotocol/server';
import { ApiError } from '../../schema/index.ts';
import { checker, refusal } from '../compile/details.ts';
import type { JsonSchema } from '../compile/json-schema.ts';
import type { Operation } from '../compile/operation.ts';
import {
  type Authenticate,
  type Caller,
  type ContextOf,
  permit,
  type Refuse,
  runner,
  type Values,
} from '../compile/run.ts';
import type { AnswerError } from '../http/errors.ts';
import { KEY_SCHEMA, type Once, runnerOnce } from '../http/idempotency.ts';
import { checkJson } from '../http/json.ts';
import type { AuditRequest } from '../http/requests.ts';
import { type Count, callerIn } from './caller.ts';
import type { Confirm } from './confirm.ts';
import { argumentsSchema, defaultsOf } from './definitions.ts';
import { demanded, paymentsOf } from './payment.ts';

export interface ToolOptions {
  operations: readonly Operation[];
  authenticate: Authenticate;
  contextOf: ContextOf;
  answerError: AnswerError;
  /** Absent: idempotency keys are not honoured. */
  once?: Once | undefined;
  auditRequest?: AuditRequest;
}

/** Told of a call while it runs; returns what ends the telling. */
export type ReportProgress = (args: Values, caller: Caller, request: ServerContext) => () => void;

/** Where an operation has another way than to run and to answer. */
export interface ToolExtras {
  /** Makes sure that the caller means it; answers what has to be asked first. */
  confirm?: Confirm | undefined;
  reportProgress?: ReportProgress | undefined;
}

/** A tool: what tools/call does. A refusal is a result, never an exception. */
export interface McpTool {
  operation: Operation;
  args: JsonSchema;
  call(given: Values, request: ServerContext, extras?: ToolExtras): Promise<CallToolResult | InputRequiredResult>;
}

const EITHER_WAY =
  'Send a credential as "Authorization: Bearer <credential>", or as the argument access_token; register_account gives one.';

export function toolsOf({ operations, ...options }: ToolOptions): McpTool[] {
  return operations
    .filter(({ tool }) => tool)
    .map((operation) => toolOf(asTool(operation), paymentsOf(operation), options));
}

/** Without the parameters that are for REST alone. */
function asTool(operation: Operation): Operation {
  return { ...operation, parameters: operation.parameters.filter(({ tool }) => tool) };
}

function toolOf(
  operation: Operation,
  newPayment: ReturnType<typeof paymentsOf>,
  options: Omit<ToolOptions, 'operations'>,
): McpTool {
  const { contextOf, answerError, once, auditRequest } = options;
  const args = argumentsSchema(operation);
  const run = runner(operation, refuser(operation, args));
  const runOnce = runnerOnce(operation, run, once);
  const withoutKey = keyTaker(operation);
  const withoutConfirm = confirmTaker(operation);
  const check = checker(args);
  const split = splitter(operation, check);
  const audit = (caller: Pick<Caller, 'viewer' | 'requestId'>, status: number) => {
    if (operation.kind === 'mutation')
      auditRequest?.(caller, { method: 'POST', path: `/mcp#${operation.tool!.name}`, status });
  };
  return {
    operation,
    args,
    async call({ access_token: token = null, ...given }, request, { confirm, reportProgress } = {}) {
      const header = callerIn(request);
      const payment = newPayment?.();
      const caller: Caller = { ...header, viewer: null, ...(payment && { setHeader: payment.setHeader }) };
      try {
        // In the documented flow the new account's token is an argument, while the header may be of another account.
        caller.viewer =
          token === null ? header.viewer : await authenticated(options, String(token), header.address, header.count);
        await header.count(caller.viewer);
        if (operation.scopes.length && !caller.viewer) throw new ApiError('missing_credential', EITHER_WAY);
        permit(operation, caller.viewer);
        checkJson(given);
        const { key, input } = withoutKey(given);
        const { confirmed, meant } = withoutConfirm(input);
        const { values, body } = split(meant);
        Object.assign(values, payment?.values(meant, request));
        if (confirm) requireSense(check(meant));
        const asked = await confirm?.(meant, confirmed, caller, request);
        if (asked) return asked;
        const context = contextOf(caller);
        const stopReporting = reportProgress?.(meant, caller, request);
        const answer = await (key === undefined
          ? run(values, body, context).then(shown)
          : runOnce(key, values, body, context).then(repeated)
        ).finally(stopReporting);
        audit(caller, 200);
        return payment?.receipted(answer) ?? answer;
      } catch (error) {
        const { status, body, headers } = answerError(error, caller.requestId);
        audit(caller, status);
        return { ...result(demanded(body, headers)), isError: true };
      }
    },
  };
}

const result = (content: Readonly<Values>, text = JSON.stringify(content)): CallToolResult => ({
  content: [{ type: 'text', text }],
  structuredContent: content,
});
const shown = (content: unknown): CallToolResult => result(content as Values);
const repeated = ({ answer }: { answer: string }): CallToolResult => result(JSON.parse(answer), answer);

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

/** Of an id: nothing has such a one. */
const NO_ID: ReadonlySet<unknown> = new Set(['wrong_format', 'too_long', 'too_short']);

/** Nobody is asked whether nonsense is meant. */
function requireSense(wrong: ReturnType<ReturnType<typeof checker>>): void {
  if (!wrong.length) return;
  throw wrong.every(({ code }) => NO_ID.has(code)) ? new ApiError('not_found') : refusal(wrong);
}

/** Takes `confirm` out of the arguments of a tool that has it. */
function confirmTaker({ tool }: Operation): (given: Values) => { confirmed: unknown; meant: Values } {
  if (!tool!.confirm) return (meant) => ({ confirmed: undefined, meant });
  return ({ confirm: confirmed, ...meant }) => ({ confirmed, meant });
}

/** Sorts arguments into parameters and body. Null stands for an absent parameter. @throws ApiError unknown_field */
function splitter(operation: Operation, check: ReturnType<typeof checker>) {
  const { parameters, input } = operation;
  const variables = new Map(parameters.map(({ name, variable }) => [name, variable]));
  const defaults = defaultsOf(operation);
  return (given: Values): { values: Values; body: Values | undefined } => {
    const values: Values = { ...defaults };
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
