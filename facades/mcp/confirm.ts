/**
 * Asks for confirmation before an irreversible call. A client that supports elicitation asks its user. Other clients repeat
 * the value of the argument in `confirm`.
 */
import {
  acceptedContent,
  createRequestStateCodec,
  type InputRequiredResult,
  inputRequired,
  type RequestStateCodec,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { refusal } from '../compile/details.ts';
import type { Operation } from '../compile/operation.ts';
import type { Caller, Values } from '../compile/run.ts';

/**
 * Checks the confirmation of a call. @returns the question for the user, or undefined if the call is confirmed
 * @throws ApiError validation_failed if the user declined, or the client must send `confirm`
 */
export type Confirm = (
  args: Values,
  confirmation: unknown,
  caller: Caller,
  request: ServerContext,
) => Promise<InputRequiredResult | undefined>;

/** A question to the user. It travels through the client, so the codec signs it. */
interface Question {
  tool: string;
  value: unknown;
  credential: string | undefined;
}
export type QuestionCodec = RequestStateCodec<Question>;

const SECONDS = 600;

/** @param key at least 32 bytes; the same in every process */
export const questionCodec = (key: Uint8Array): QuestionCodec =>
  createRequestStateCodec<Question>({ key, ttlSeconds: SECONDS });

/** @param canAsk whether the client supports elicitation */
export function confirmOf({ tool }: Operation, codec: QuestionCodec, canAsk: () => boolean): Confirm | undefined {
  const { name, title = name, confirm } = tool!;
  if (!confirm) return undefined;
  return async (args, confirmation, caller, { mcpReq }) => {
    const value = args[confirm];
    if (confirmation !== undefined && confirmation !== null) {
      if (confirmation === value) return undefined;
      throw refused('not_allowed', `confirm must repeat the value of ${confirm}.`);
    }
    const question = mcpReq.requestState<Question>();
    const credential = caller.viewer?.credentialId;
    if (question && question.tool === name && question.value === value && question.credential === credential) {
      if (acceptedContent<{ confirm?: unknown }>(mcpReq.inputResponses, 'confirm')?.confirm === true) return undefined;
      throw refused('not_allowed', 'The user did not confirm the call, and the service changed nothing.');
    }
    if (!canAsk())
      throw refused('required', `This cannot be undone. To confirm, repeat the value of ${confirm} in confirm.`);
    return inputRequired({
      inputRequests: {
        confirm: inputRequired.elicit({
          message: `${title}: ${value}? This cannot be undone.`,
          requestedSchema: {
            type: 'object',
            properties: { confirm: { type: 'boolean', title: `Yes, ${value}` } },
            required: ['confirm'],
          },
        }),
      },
      requestState: await codec.mint({ tool: name, value, credential }),
    });
  };
}

const refused = (code: 'required' | 'not_allowed', message: string) => refusal([{ field: 'confirm', code, message }]);
