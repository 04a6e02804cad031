/** Admits the messages of a request: checks the credential of each, and counts each once. It does so before any work. */
import { INVALID_REQUEST } from '@modelcontextprotocol/server';
import type { FastifyRequest } from 'fastify';
import { ApiError } from '../../../schema/index.ts';
import { isRecord } from '../../compile/inputs.ts';
import type { Authenticate } from '../../compile/run.ts';
import type { Admitted, Count, Messages } from '../caller.ts';
import { TEXT_MAX } from './client-details.ts';

export const BATCH_MAX = 10;

/** A body that is refused as a whole, with the code of JSON-RPC. */
export class InvalidMessages extends Error {
  readonly code = INVALID_REQUEST;
}

type Sender = Pick<FastifyRequest, 'viewer' | 'ip' | 'body' | 'headers'>;

/**
 * An empty body counts as one message. A refused tool call gets its refusal as a tool error.
 * @throws InvalidMessages for a batch that is too long, or uses an id twice, or for a long id
 * @throws ApiError rate_limited, if a limit refuses any other message
 */
export async function admitMessages(
  { viewer, ip, body, headers }: Sender,
  authenticate: Authenticate,
  count: Count,
): Promise<Messages> {
  const messages = Array.isArray(body) && body.length ? body : [body];
  if (messages.length > BATCH_MAX) {
    await count(viewer);
    throw new InvalidMessages(`A batch holds at most ${BATCH_MAX} messages, and this one has ${messages.length}.`);
  }
  const admitted = new Map<unknown, Admitted>();
  let refusal: ApiError | undefined;
  for (const message of messages) {
    const token = tokenOf(message);
    const readmit = () => authenticate(token === undefined ? headers.authorization : `Bearer ${token}`, ip);
    // A stranger without calls left gets no lookup.
    const known = token === undefined ? { viewer } : refusal ? { viewer: null, refusal } : await authenticated(readmit);
    const caller: Admitted = { readmit, ...known };
    try {
      if (token === undefined || !refusal) await count(caller.viewer, message);
    } catch (error) {
      if (!(error instanceof ApiError) || !isToolCall(message)) throw error;
      caller.refusal = error;
      if (!caller.viewer) refusal = error;
    }
    if (isRecord(message) && typeof message.id === 'string' && message.id.length > TEXT_MAX)
      throw new InvalidMessages(`The id of a message has at most ${TEXT_MAX} characters.`);
    if (!isRecord(message) || message.id === undefined || message.method === undefined) continue;
    if (admitted.has(message.id)) throw new InvalidMessages('Two messages of the batch have the same id.');
    admitted.set(message.id, caller);
  }
  return admitted;
}

/** Whether the message is a tool call that gets an answer. */
const isToolCall = (message: unknown): boolean =>
  isRecord(message) && message.method === 'tools/call' && message.id !== undefined;

/** The credential that a tool call has as an argument. It has priority over the header. */
function tokenOf(message: unknown): string | undefined {
  if (!isRecord(message) || !isToolCall(message)) return undefined;
  const args = isRecord(message.params) ? message.params.arguments : undefined;
  const token = isRecord(args) ? args.access_token : undefined;
  return token === undefined || token === null ? undefined : String(token);
}

/** Checks the credential. A message with a refused one counts as one without, as in REST. */
async function authenticated(check: Admitted['readmit']): Promise<Omit<Admitted, 'readmit'>> {
  try {
    return { viewer: await check() };
  } catch (refusal) {
    return { viewer: null, refusal };
  }
}
