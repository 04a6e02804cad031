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
