/** The tools: one for each operation with `@tool`. They have the rules and the errors of REST. */
import type { CallToolResult, InputRequiredResult, ServerContext } from '@modelcontextprotocol/server';
import {
  ApiError,
  Ceiling,
  callsCountAs,
  type FieldError,
  groupOf,
  type Span,
  type Viewer,
} from '../../schema/index.ts';
import { checker, refusal } from '../compile/details.ts';
import type { JsonSchema } from '../compile/json-schema.ts';
import type { Operation } from '../compile/operation.ts';
import {
  type Caller,
  type ContextOf,
  type OnAnswer,
  type OpenSpan,
  permit,
  type Refuse,
  runner,
  type Values,
  withinSpan,
} from '../compile/run.ts';
import { jsonOf } from '../compile/sharing.ts';
import { meantByWord, noteWord, refuseBoth } from '../compile/words.ts';
import type { ErrorResponder } from '../http/errors.ts';
import { KEY_SCHEMA, type Once, runnerOnce } from '../http/idempotency.ts';
import { checkJson } from '../http/json.ts';
import type { AuditRequest } from '../http/requests.ts';
import { callerIn, type McpCaller } from './caller.ts';
import type { Confirm } from './confirm.ts';
import { argumentsSchema, defaultsOf } from './definitions.ts';
import { paymentsOf, withRequirements } from './payment.ts';

export interface ToolOptions {
  operations: readonly Operation[];
  contextOf: ContextOf;
  errorResponse: ErrorResponder;
  /** Absent: idempotency keys have no effect. */
  once?: Once | undefined;
  auditRequest?: AuditRequest;
  onAnswer?: OnAnswer;
  openSpan?: OpenSpan | undefined;
}

/** Reports the progress of a running call. @returns a function that ends the reports */
export type ReportProgress = (args: Values, caller: Caller, request: ServerContext) => () => void;

/** Additional behaviour of some tools. */
export interface ToolExtras {
  /** Asks for confirmation before the call. */
  confirm?: Confirm | undefined;
  reportProgress?: ReportProgress | undefined;
}

/** A tool of tools/call. It returns an error as a result, and never throws. */
export interface McpTool {
  operation: Operation;
  args: JsonSchema;
  call(args: Values, request: ServerContext, extras?: ToolExtras): Promise<CallToolResult | InputRequiredResult>;
}

const MISSING_CREDENTIAL =
  'Send a credential as "Authorization: Bearer <credential>", or as the argument access_token. register_account issues one.';

/** The most tool calls that a caller has under way, because each holds its message until it ends. */
const CALLS_MAX = 32;

export function toolsOf({ operations, ...options }: ToolOptions): McpTool[] {
  const underWay = new Ceiling(CALLS_MAX, `You have ${CALLS_MAX} tool calls under way. Wait until one ends.`, 1);
  return operations
    .filter(({ tool }) => tool)
    .map((operation) => toolOf(asTool(operation), paymentsOf(operation), { ...options, underWay }));
}

/** The operation without the parameters of REST only. */
function asTool(operation: Operation): Operation {
  return { ...operation, parameters: operation.parameters.filter(({ tool }) => tool) };
}

function toolOf(
  operation: Operation,
  newPayment: ReturnType<typeof paymentsOf>,
  options: Omit<ToolOptions, 'operations'> & { underWay: Ceiling },
): McpTool {
  const { contextOf, errorResponse, once, auditRequest, onAnswer, openSpan, underWay } = options;
  const schema = argumentsSchema(operation);
  const run = runner(operation, refuser(operation, schema));
  const runOnce = runnerOnce(operation, run, once);
  const takeKey = keyTaker(operation);
  const takeConfirm = confirmTaker(operation);
  const check = checker(schema);
  const split = splitter(operation, check);
  const tell = (caller: Pick<Caller, 'viewer' | 'requestId'>, status: number, { startedAt, span }: Begun) => {
    const { requestId } = caller;
    const ms = performance.now() - startedAt;
    onAnswer?.({ facade: 'mcp', operation: operation.name, status, ms, requestId, span });
    if (operation.kind === 'mutation')
      auditRequest?.(caller, { method: 'POST', path: `/mcp#${operation.tool!.name}`, status });
  };
  return {
    operation,
    args: schema,
    async call({ access_token: _, ...sent }, request, { confirm, reportProgress } = {}) {
      const begun = { startedAt: performance.now(), span: openSpan?.() };
      const header = callerIn(request);
      const payment = newPayment?.();
      const caller: McpCaller & Caller = { ...header, viewer: null, ...(payment && { setHeader: payment.setHeader }) };
      let leave = () => {};
      try {
        // The argument has priority: in the documented flow it is a new account's token beside another account's header.
        const admitted = header.messages.get(request.mcpReq.id)!;
        if (admitted.refusal) throw admitted.refusal;
        caller.viewer = admitted.viewer;
        leave = underWay.enter(countedWith(operation, caller.viewer, caller.address));
        if (operation.scopes.length && !caller.viewer) throw new ApiError('missing_credential', MISSING_CREDENTIAL);
        permit(operation, caller.viewer);
        checkJson(sent);
        const { key, rest } = takeKey(sent);
        const { confirmation, args } = takeConfirm(rest);
        const { values, body } = split(args);
        Object.assign(values, payment?.values(args, request));
        if (confirm) requireValid(check(args));
        const question = await confirm?.(args, confirmation, caller, request);
        if (question) return question;
        // The user may take minutes to answer, and the credential may have ended.
        if (confirm) {
          caller.viewer = await admitted.readmit();
          permit(operation, caller.viewer);
        }
        const context = contextOf(caller);
        const stopReporting = reportProgress?.(args, caller, request);
        const work = () =>
          key === undefined
            ? run(values, body, context).then((answer) => resultOf(answer as Values))
            : runOnce(key, values, body, context).then(({ answer }) => resultOf(JSON.parse(answer), answer));
        const result = await withinSpan(begun.span, work).finally(stopReporting);
        tell(caller, 200, begun);
        return payment?.withReceipt(result) ?? result;
      } catch (error) {
        const { status, body, headers } = errorResponse(error, caller.requestId, operation.name);
        tell(caller, status, begun);
        return { ...resultOf(withRequirements(body, headers)), isError: true };
      } finally {
        leave();
      }
    },
  };
}

/** The beginning of a call. */
interface Begun {
  startedAt: number;
  span: Span | undefined;
}

/** The name under which a call counts. Urgent calls of a login count apart, so no other credential of the account holds them up. */
const countedWith = ({ urgent }: Operation, viewer: Viewer | null, address: string | null): string =>
  urgent && viewer?.isLogin ? `urgent ${callsCountAs(viewer)}` : groupOf(viewer, address);

const resultOf = (content: Readonly<Values>, text = jsonOf(content)): CallToolResult => ({
  content: [{ type: 'text', text }],
  structuredContent: content,
});

/** Separates the idempotency key from the other arguments. @throws ApiError validation_failed */
function keyTaker({ tool }: Operation): (args: Values) => { key: string | undefined; rest: Values } {
  if (!tool!.keyed) return (rest) => ({ key: undefined, rest });
  const check = checker(KEY_SCHEMA, 'idempotency_key');
  return ({ idempotency_key: key = null, ...rest }) => {
    const errors = key === null ? [] : check(key);
    if (errors.length) throw refusal(errors);
    return { key: (key as string | null) ?? undefined, rest };
  };
}

/** The codes of errors that make a value an impossible id. */
const NO_ID: ReadonlySet<unknown> = new Set(['wrong_format', 'too_long', 'too_short']);

/** Refuses invalid arguments before the service asks for confirmation. */
function requireValid(errors: FieldError[]): void {
  if (!errors.length) return;
  throw errors.every(({ code }) => NO_ID.has(code)) ? new ApiError('not_found') : refusal(errors);
}

/** Separates `confirm` from the other arguments. */
function confirmTaker({ tool }: Operation): (rest: Values) => { confirmation: unknown; args: Values } {
  if (!tool!.confirm) return (args) => ({ confirmation: undefined, args });
  return ({ confirm: confirmation, ...args }) => ({ confirmation, args });
}

/** Splits arguments into parameters and body. A parameter that is null counts as absent. @throws ApiError unknown_field */
function splitter(operation: Operation, check: ReturnType<typeof checker>) {
  const { parameters, input } = operation;
  const variables = new Map(parameters.map(({ name, variable }) => [name, variable]));
  const defaults = defaultsOf(operation);
  return (args: Values): { values: Values; body: Values | undefined } => {
    const values: Values = { ...defaults };
    const body: Values = {};
    for (const [word, value] of Object.entries(args)) {
      const name = meantByWord(word, variables) ?? word;
      const variable = variables.get(name);
      if (!variable) body[word] = value;
      else if (value !== null) {
        refuseBoth(args, word, name, 'validation_failed');
        values[variable] = value;
        if (word !== name) noteWord(values, name, word);
      }
    }
    if (!input && Object.keys(body).length) throw refusal(check(args));
    return { values, body: input && (input.required || Object.keys(body).length) ? body : undefined };
  };
}

/** Makes the error of invalid arguments, which is 422 for parameters, too. */
function refuser({ parameters }: Operation, schema: JsonSchema): Refuse {
  const check = checker(schema);
  return (values, body, fallback) => {
    const args: Values = { ...(body as Values | undefined) };
    for (const { name, variable } of parameters) if (variable in values) args[name] = values[variable];
    const errors = check(args);
    return refusal(errors.length ? errors : fallback());
  };
}
