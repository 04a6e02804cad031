/**
 * The transport of a session of 2025, and of a POST without a session. The SDK counts the questions of each server from zero.
 * So a reopened session could take the answer to an earlier question for its own. Here each question gets a random id.
 *
 * The SDK forgets a POST only after an answer to each of its calls, and answers no cancelled call. This transport completes the
 * POST in its place, so nothing of an ended POST stays.
 */
import { randomUUID } from 'node:crypto';
import {
  INVALID_REQUEST,
  type JSONRPCMessage,
  type RequestId,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { isRecord } from '../../compile/inputs.ts';
import { idOf, rpcError, SERVER_ERROR } from './rpc.ts';

type Transport = WebStandardStreamableHTTPServerTransport;
type Sending = Parameters<Transport['send']>[1];
type Handling = Parameters<Transport['handleRequest']>[1];
type Answer = Extract<JSONRPCMessage, { result: unknown } | { error: unknown }>;

/** The calls of a POST. They keep their ids until the last one ends. */
interface Post {
  ids: readonly RequestId[];
  /** The calls whose answer is due. */
  waiting: Set<RequestId>;
  /** The calls that get no answer. */
  cancelled: Set<RequestId>;
}

export class SessionTransport extends WebStandardStreamableHTTPServerTransport {
  /** The ids of the SDK by those that the client sees. */
  readonly #asked = new Map<RequestId, RequestId>();
  /** The open POSTs by the ids of their calls. */
  readonly #posts = new Map<RequestId, Post>();

  constructor(options?: ConstructorParameters<typeof WebStandardStreamableHTTPServerTransport>[0]) {
    super(options);
    // The server of the SDK calls this function before its own.
    this.onmessage = (message) => this.#noticeCancelled(message);
  }

  override async handleRequest(request: Request, options?: Handling): Promise<Response> {
    if (request.method !== 'POST') return super.handleRequest(request, options);
    const body = options?.parsedBody;
    const messages = [body].flat();
    // Checks all answers of a batch first, because a refused batch uses none up.
    if (this.sessionId !== undefined && !messages.every((message) => this.#awaits(message)))
      return rpcError(400, INVALID_REQUEST, 'No call of this session waits for this answer in this process.');
    const ids = messages.filter(isCall).map(({ id }) => id);
    if (ids.some((id) => this.#posts.has(id)))
      return rpcError(400, INVALID_REQUEST, 'Another call of this session has this id.', {}, idOf(body));
    const post: Post = { ids, waiting: new Set(ids), cancelled: new Set() };
    for (const id of ids) this.#posts.set(id, post);
    const parsedBody = Array.isArray(body) ? body.map((one) => this.#received(one)) : this.#received(body);
    const response = await super.handleRequest(request, { ...options, parsedBody });
    if (response.status !== 200) this.#forget(post);
    return response;
  }

  override async send(message: JSONRPCMessage, options?: Sending): Promise<void> {
    if (isAnswer(message)) return this.#answer(message, options);
    const call = options?.relatedRequestId;
    const isOver = call !== undefined && !this.#posts.has(call);
    if (isOver && 'id' in message) throw new Error('The call of this question has ended.');
    const sent = this.#sent(message);
    if (!isOver) await super.send(sent, options);
  }

  async #answer(message: Answer, options: Sending): Promise<void> {
    const id = message.id!;
    const post = this.#posts.get(id);
    if (!post?.waiting.delete(id)) return;
    const answer = { ...message };
    await super.send(answer, options);
    // The SDK keeps the object until the last answer of the POST, and reads it no more.
    if ('result' in answer) answer.result = {};
    else answer.error = { code: SERVER_ERROR, message: '' };
    await this.#complete(post);
  }

  /** In a batch, this message may precede the call that it cancels. So the SDK reads the whole batch first. */
  #noticeCancelled(message: JSONRPCMessage): void {
    // With an id, it is a call of an unknown method.
    if (!('method' in message) || message.method !== 'notifications/cancelled' || 'id' in message) return;
    const { requestId, reason } = (message.params ?? {}) as { requestId?: RequestId; reason?: unknown };
    // The SDK ignores the message then.
    if (requestId === undefined || (reason !== undefined && typeof reason !== 'string')) return;
    queueMicrotask(() => {
      const post = this.#posts.get(requestId);
      if (!post?.waiting.delete(requestId)) return;
      post.cancelled.add(requestId);
      // The question of a cancelled call ends first, and its client hears of that.
      setImmediate(() => void this.#complete(post).catch((error) => this.onerror?.(error)));
    });
  }

  /** Ends a POST after its last answer. The protocol wants no answer to a cancelled call, so its stream ends before. */
  async #complete(post: Post): Promise<void> {
    if (post.waiting.size || this.#posts.get(post.ids[0]!) !== post) return;
    this.#forget(post);
    const [cancelled] = post.cancelled;
    if (cancelled === undefined) return;
    this.closeSSEStream(cancelled);
    const error = { code: SERVER_ERROR, message: 'The client cancelled the call.' };
    for (const id of post.cancelled) await super.send({ jsonrpc: '2.0', id, error });
  }

  #forget({ ids }: Post): void {
    for (const id of ids) this.#posts.delete(id);
  }

  /** Whether a message is no answer, or a question waits for it. */
  #awaits(message: unknown): boolean {
    return !isAnswer(message) || this.#asked.has(message.id!);
  }

  /** Returns an awaited answer with the id of the SDK, and any other message as it is. */
  #received(message: unknown): unknown {
    if (!isAnswer(message)) return message;
    const id = this.#asked.get(message.id!);
    this.#asked.delete(message.id!);
    return id === undefined ? message : { ...message, id };
  }

  #sent(message: JSONRPCMessage): JSONRPCMessage {
    if (!('method' in message)) return message;
    if ('id' in message) {
      const id = randomUUID();
      this.#asked.set(id, message.id);
      return { ...message, id };
    }
    if (message.method !== 'notifications/cancelled') return message;
    const known = [...this.#asked].find(([, id]) => id === message.params?.requestId)?.[0];
    if (known === undefined) return message;
    this.#asked.delete(known);
    return { ...message, params: { ...message.params, requestId: known } };
  }
}

const isAnswer = (message: unknown): message is Answer =>
  isRecord(message) && message.method === undefined && message.id !== undefined;

const isCall = (message: unknown): message is { id: RequestId } =>
  isRecord(message) && message.method !== undefined && message.id !== undefined;
