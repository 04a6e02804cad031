/** Admits the messages of a request: checks the credential of each, and counts each once. It does so before any work. */
import type { FastifyRequest } from 'fastify';
import { ApiError } from '../../../schema/index.ts';
import { refusal } from '../../compile/details.ts';
import { isRecord } from '../../compile/inputs.ts';
import type { Authenticate } from '../../compile/run.ts';
import type { Admitted, Count, Messages } from '../caller.ts';
import { INVALID_REQUEST, TEXT_MAX } from './rpc.ts';

export const BATCH_MAX = 10;
const NO_TEXT = refusal([{ field: 'access_token', code: 'wrong_type', message: 'access_token must be a string.' }]);

/** A body that is refused as a whole, with the code of JSON-RPC. */
export class InvalidMessages extends Error {
  readonly code = INVALID_REQUEST;
}

type Sender = Pick<FastifyRequest, 'viewer' | 'ip' | 'body' | 'headers'>;

/**
 * An empty body counts as one message. A single tool call of an account gets its refusal as a tool error, which its model
 * reads. So does a tool call of a batch that a limit refuses in part.
 * @throws InvalidMessages for a batch that is too long, or uses an id twice, or for a long id
 * @throws ApiError rate_limited, if a limit refuses all messages, or one that is no tool call
 */
export async function admitMessages(sender: Sender, authenticate: Authenticate, count: Count): Promise<Messages> {
  const { viewer, body } = sender;
  const messages = Array.isArray(body) && body.length ? body : [body];
  if (messages.length > BATCH_MAX) {
    await count(viewer);
    throw new InvalidMessages(`A batch holds at most ${BATCH_MAX} messages, and this one has ${messages.length}.`);
  }
  const admitted = new Map<unknown, Admitted>();
  const admission: Admission = { sender, authenticate, count, refusal: undefined };
  const refused: ApiError[] = [];
  for (const message of messages) {
    const caller = await admit(message, admission);
    if (isRateLimited(caller.refusal)) refused.push(caller.refusal);
    if (isRecord(message) && typeof message.id === 'string' && message.id.length > TEXT_MAX)
      throw new InvalidMessages(`The id of a message has at most ${TEXT_MAX} characters.`);
    if (!isRecord(message) || message.id === undefined || message.method === undefined) continue;
    if (admitted.has(message.id)) throw new InvalidMessages('Two messages of the batch have the same id.');
    admitted.set(message.id, caller);
  }
  // An answer to each of them would cost the service far more than the refusal.
  const isWhole = messages.length > 1 || admission.refusal !== undefined;
  if (isWhole && refused.length === messages.length) throw refused[0];
  return admitted;
}

interface Admission {
  sender: Sender;
  authenticate: Authenticate;
  count: Count;
  /** The refusal of a stranger. It holds for all further messages without an account, without a lookup or a count. */
  refusal: ApiError | undefined;
}

/** @throws ApiError rate_limited, if the message is no tool call */
async function admit(message: unknown, admission: Admission): Promise<Admitted> {
  const { sender, authenticate, count } = admission;
  const token = tokenOf(message);
  const isToken = typeof token === 'string';
  const credential = isToken ? `Bearer ${token}` : sender.headers.authorization;
  const readmit = () => authenticate(credential, sender.ip);
  if (isToken && admission.refusal) return { viewer: null, refusal: admission.refusal, readmit };
  const known = isToken ? await authenticated(readmit) : { viewer: sender.viewer };
  const caller: Admitted = { readmit, ...known, ...(token !== undefined && !isToken && { refusal: NO_TEXT }) };
  try {
    if (!caller.viewer && admission.refusal) throw admission.refusal;
    await count(caller.viewer, message);
  } catch (error) {
    if (!(error instanceof ApiError) || !isToolCall(message)) throw error;
    caller.refusal = error;
    if (!caller.viewer) admission.refusal = error;
  }
  return caller;
}

const isRateLimited = (refusal: unknown): refusal is ApiError =>
  refusal instanceof ApiError && refusal.code === 'rate_limited';

/** Whether the message is a tool call that gets an answer. */
const isToolCall = (message: unknown): boolean =>
  isRecord(message) && message.method === 'tools/call' && message.id !== undefined;

/** The credential that a tool call has as an argument, unless it is null. It has priority over the header. */
function tokenOf(message: unknown): unknown {
  if (!isRecord(message) || !isToolCall(message)) return undefined;
  const args = isRecord(message.params) ? message.params.arguments : undefined;
  return isRecord(args) ? (args.access_token ?? undefined) : undefined;
}

/** Checks the credential. A message with a refused one counts as one without, as in REST. */
async function authenticated(check: Admitted['readmit']): Promise<Omit<Admitted, 'readmit'>> {
  try {
    return { viewer: await check() };
  } catch (refusal) {
    return { viewer: null, refusal };
  }
}
