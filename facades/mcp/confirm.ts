/**
 * Makes sure that what cannot be undone is meant. A client that can ask its user is told to (elicitation); another
 * repeats what it means in `confirm`.
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
 * Answers what the client has to ask its user; undefined if it is meant.
 * @throws ApiError validation_failed if it is not, or has to be confirmed by argument
 */
export type Confirm = (
  args: Values,
  confirmed: unknown,
  caller: Caller,
  request: ServerContext,
) => Promise<InputRequiredResult | undefined>;

/** What was asked, and whom: it goes to the client and comes back, so it is signed. */
interface Asked {
  tool: string;
  means: unknown;
  credential: string | undefined;
}
export type AskedCodec = RequestStateCodec<Asked>;

const SECONDS = 600;

/** @param key at least 32 bytes; the same in every process */
export const askedCodec = (key: Uint8Array): AskedCodec => createRequestStateCodec<Asked>({ key, ttlSeconds: SECONDS });

/** @param canAsk whether the client has said that it can ask its user */
export function confirmOf({ tool }: Operation, codec: AskedCodec, canAsk: () => boolean): Confirm | undefined {
  const { name, title = name, confirm } = tool!;
  if (!confirm) return undefined;
  return async (args, confirmed, caller, { mcpReq }) => {
    const means = args[confirm];
    if (confirmed !== undefined && confirmed !== null) {
      if (confirmed === means) return undefined;
      throw refused('not_allowed', `confirm must be ${confirm} again.`);
    }
    const asked = mcpReq.requestState<Asked>();
    const credential = caller.viewer?.credentialId;
    if (asked && asked.tool === name && asked.means === means && asked.credential === credential) {
      if (acceptedContent<{ confirm?: unknown }>(mcpReq.inputResponses, 'confirm')?.confirm === true) return undefined;
      throw refused('not_allowed', 'The user has not confirmed it. Nothing was done.');
    }
    if (!canAsk()) throw refused('required', `This cannot be undone: repeat ${confirm} in confirm if it is meant.`);
    return inputRequired({
      inputRequests: {
        confirm: inputRequired.elicit({
          message: `${title}: ${means}? This cannot be undone.`,
          requestedSchema: {
            type: 'object',
            properties: { confirm: { type: 'boolean', title: `Yes, ${means}` } },
            required: ['confirm'],
          },
        }),
      },
      requestState: await codec.mint({ tool: name, means, credential }),
    });
  };
}

const refused = (code: 'required' | 'not_allowed', message: string) => refusal([{ field: 'confirm', code, message }]);
