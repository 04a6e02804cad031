/**
 * Asks for confirmation before an irreversible call. A client that supports elicitation asks its user. Other clients repeat
 * the value of the argument in `confirm`, which counts only from them.
 */
import {
  acceptedContent,
  createRequestStateCodec,
  type ElicitResult,
  type InputRequiredResult,
  inputRequired,
  type RequestStateCodec,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { refusal } from '../compile/details.ts';
import type { Operation } from '../compile/operation.ts';
import type { Caller, Values } from '../compile/run.ts';
import type { McpCaller } from './caller.ts';
import type { Precheck } from './checks.ts';

/**
 * Checks the confirmation of a call. @returns the question for the user, or undefined if the call is confirmed
 * @throws ApiError validation_failed if the user declined, or the client must send `confirm`
 * @throws ApiError unavailable without an answer, or the error of a call that cannot succeed
 */
export type Confirm = (
  args: Values,
  confirmation: unknown,
  caller: McpCaller & Caller,
  request: ServerContext,
) => Promise<InputRequiredResult | undefined>;

/** A question to the user. It travels through the client, so the codec signs it. */
interface Question {
  tool: string;
  value: unknown;
  credential: string | undefined;
}
export type QuestionCodec = RequestStateCodec<Question>;

/** Clients of 2026-07-28 send the call again with the answer, and so hold nothing meanwhile. */
const SECONDS = 600;

/** Secrets of 32 bytes. The first signs. A text that another one signed is right, too: an operator may replace them. */
export type Secrets = readonly [Buffer, ...Buffer[]];

export function questionCodec(secrets: Secrets): QuestionCodec {
  const codecs = secrets.map((key) => createRequestStateCodec<Question>({ key, ttlSeconds: SECONDS }));
  return {
    mint: (...given) => codecs[0]!.mint(...given),
    // The reason of the first codec is the one to report.
    verify: (...given) =>
      Promise.any(codecs.map((codec) => codec.verify(...given))).catch(({ errors: [first] }: AggregateError) => {
        throw first;
      }),
  };
}

/** A question with fields for the answer. */
type Form = Parameters<typeof inputRequired.elicit>[0];

/** The ways of a client to ask its user. */
export interface Asking {
  /** Whether the client can show forms. */
  canAsk(): boolean;
  /** Asks, and waits for the answer. Absent: the client gets the question as the result of the call. */
  ask?: (form: Form, caller: McpCaller & Caller, request: ServerContext) => Promise<ElicitResult>;
}

export interface ConfirmOptions extends Asking {
  codec: QuestionCodec;
  /** Refuses a call that cannot succeed, before the user is asked. */
  precheck: Precheck | undefined;
}

export function confirmOf({ tool }: Operation, options: ConfirmOptions): Confirm | undefined {
  const { name, title = name, confirm } = tool!;
  if (!confirm) return undefined;
  const { codec, precheck, canAsk, ask } = options;
  return async (args, confirmation, caller, request) => {
    const { mcpReq } = request;
    const value = args[confirm];
    const asks = canAsk();
    // A client that asks its user must not confirm for it.
    if (!asks && confirmation !== undefined && confirmation !== null) {
      if (confirmation === value) return undefined;
      throw refused('not_allowed', `confirm must repeat the value of ${confirm}.`);
    }
    const question = mcpReq.requestState<Question>();
    const credential = caller.viewer?.credentialId;
    if (question && question.tool === name && question.value === value && question.credential === credential)
      return requireYes(acceptedContent(mcpReq.inputResponses, 'confirm'));
    await precheck?.(args, caller);
    if (!asks)
      throw refused('required', `This cannot be undone. To confirm, repeat the value of ${confirm} in confirm.`);
    const form = formOf(`${title}: ${value}? This cannot be undone.`, `Yes, ${value}`);
    if (ask) {
      const { action, content } = await ask(form, caller, request);
      return requireYes(action === 'accept' ? content : undefined);
    }
    return inputRequired({
      inputRequests: { confirm: inputRequired.elicit(form) },
      requestState: await codec.mint({ tool: name, value, credential }),
    });
  };
}

const formOf = (message: string, title: string): Form => ({
  message,
  requestedSchema: { type: 'object', properties: { confirm: { type: 'boolean', title } }, required: ['confirm'] },
});

/** @throws ApiError unless the user accepted and said yes */
function requireYes(content: { confirm?: unknown } | undefined): undefined {
  if (content?.confirm !== true)
    throw refused('not_allowed', 'The user did not confirm the call, and the service changed nothing.');
}

const refused = (code: 'required' | 'not_allowed', message: string) => refusal([{ field: 'confirm', code, message }]);
