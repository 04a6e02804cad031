/**
 * Sessions of the clients of 2025. They carry updates, and questions to the user. The id has a MAC over the credential, which
 * proves that the service issued it. So any process can reopen a session, for example after a restart.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import {
  INVALID_PARAMS,
  isInitializeRequest,
  type McpHandlerRequestOptions,
  type McpServerFactory,
  type Server,
} from '@modelcontextprotocol/server';
import { isRecord } from '../../compile/inputs.ts';
import type { OnCredentialEnd } from '../../compile/run.ts';
import { callerOf, type McpCaller } from '../caller.ts';
import type { Secrets } from '../confirm.ts';
import type { Question } from '../questions.ts';
import { afterBody } from './response-body.ts';
import { idOf, rpcError, SERVER_ERROR } from './rpc.ts';
import { type Held, type Owner, ownerOf, roomFor } from './session-limits.ts';
import { SessionTransport } from './session-transport.ts';

export interface SessionOptions {
  factory: McpServerFactory;
  /** Sign the ids of sessions. */
  secrets: Secrets;
  onCredentialEnd: OnCredentialEnd;
  onError: (error: Error) => void;
  idleMs?: number;
}

interface Session extends Held {
  transport: SessionTransport;
  server: Server;
  seenAt: number;
  questions: Set<Question>;
  /** Whether the session takes no more requests. It closes after the response to its last call. */
  dropped: boolean;
  forget: () => void;
}

const ENDED_MAX = 10_000;
const IDLE_MS = 30 * 60_000;
const RETRY_SECONDS = '5';
const NOT_FOUND = -32_001;
/** Marks the id of a session whose client supports elicitation. */
const ASKS = 'a';

export class Sessions {
  readonly #options: SessionOptions;
  /** The sessions of this process, the least recently used first. */
  readonly #live = new Map<string, Session>();
  readonly #reviving = new Map<string, Promise<Session | undefined>>();
  readonly #ended = new Set<string>();
  readonly #sweeper: NodeJS.Timeout;
  #closed = false;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#sweeper = setInterval(() => this.#sweep(), 60_000).unref();
  }

  async fetch(request: Request, options: McpHandlerRequestOptions): Promise<Response> {
    const caller = callerOf(options.authInfo);
    const id = request.headers.get('mcp-session-id');
    if (id === null) return this.#withoutSession(request, options, caller);
    const owner = ownerOf(caller, this.#options.secrets[0]);
    if (!this.#isIssued(id, owner) || this.#ended.has(id))
      return rpcError(404, NOT_FOUND, 'There is no such session. Initialize a new one.');
    const session = this.#live.get(id) ?? (await this.#revived(id, owner, request, options));
    if (session instanceof Response) return session;
    if (!session) return this.#once(request, options);
    session.seenAt = Date.now();
    caller.questions = session.questions;
    this.#live.delete(id);
    this.#live.set(id, session);
    if (request.method !== 'GET') return this.#call(id, session, request, options);
    const stream = await session.transport.handleRequest(request, options);
    session.streams++;
    if (this.#closed) this.#drop(id);
    return afterBody(withFirstBytes(stream), () => session.streams--);
  }

  /** Handles a call of a session, which gives no room as an idle one meanwhile. */
  async #call(id: string, session: Session, request: Request, options: McpHandlerRequestOptions): Promise<Response> {
    session.calls++;
    const ended = () => {
      session.calls--;
      if (session.dropped) this.#close(session);
    };
    const response = await session.transport.handleRequest(request, options).catch((error) => {
      ended();
      throw error;
    });
    if (this.#closed) this.#drop(id);
    return afterBody(response, ended);
  }

  /** Ends all streams, including those that are opening, and completes the calls. Clients return with their ids. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#sweeper);
    for (const id of [...this.#live.keys()]) this.#drop(id);
  }

  async #withoutSession(request: Request, options: McpHandlerRequestOptions, caller: McpCaller): Promise<Response> {
    const messages = [options.parsedBody].flat();
    const initialize = messages.find(isInitializeRequest);
    if (!initialize) {
      const invalid = messages.filter(isRecord).find(({ method, id }) => method === 'initialize' && id !== undefined);
      if (invalid) return rpcError(400, INVALID_PARAMS, 'The params of initialize are not valid.', {}, invalid.id);
      if (request.method === 'POST') return this.#once(request, options);
      return rpcError(405, SERVER_ERROR, 'Without a session, only POST is possible.', { allow: 'POST' });
    }
    const owner = ownerOf(caller, this.#options.secrets[0]);
    const refusal = this.#makeRoom(owner, options);
    if (refusal) return refusal;
    const asks = initialize.params.capabilities.elicitation !== undefined;
    const id = this.#mint(owner, asks);
    return this.#call(id, await this.#open(id, owner, caller, options), request, options);
  }

  /**
   * Serves a POST by a server of its own, which ends with the response or with the connection. It also serves a call whose
   * session ended while it reopened, for example because its account was suspended. The next call authenticates again.
   */
  async #once(request: Request, options: McpHandlerRequestOptions): Promise<Response> {
    if (request.method !== 'POST') return rpcError(404, NOT_FOUND, 'The session has ended. Initialize a new one.');
    const server = await this.#newServer(options);
    const transport = new SessionTransport();
    await server.connect(transport);
    const end = () => void server.close().catch(() => {});
    request.signal.addEventListener('abort', end, { once: true });
    return afterBody(await transport.handleRequest(request, options), end);
  }

  async #newServer({ authInfo }: McpHandlerRequestOptions): Promise<Server> {
    return (await this.#options.factory({ era: 'legacy', ...(authInfo && { authInfo }) })) as Server;
  }

  /** Prepares a session. It becomes live with `initialize`. */
  async #open(id: string, owner: Owner, { viewer }: McpCaller, options: McpHandlerRequestOptions): Promise<Session> {
    const server = await this.#newServer(options);
    const transport = new SessionTransport({
      sessionIdGenerator: () => id,
      onsessioninitialized: async () => {
        const credential = viewer && this.#options.onCredentialEnd(viewer, () => this.#drop(id));
        session.forget = () => credential?.forget();
        this.#live.set(id, session);
        await credential?.checked;
      },
      onsessionclosed: () => this.#end(id),
    });
    const session: Session = {
      transport,
      server,
      owner,
      seenAt: Date.now(),
      calls: 0,
      streams: 0,
      questions: new Set(),
      dropped: false,
      forget: () => {},
    };
    await server.connect(transport);
    return session;
  }

  /** Reopens a session by repeating the handshake for the client. @returns undefined if the transport refused it */
  async #revived(id: string, owner: Owner, request: Request, options: McpHandlerRequestOptions) {
    if (request.method === 'DELETE') this.#end(id);
    const refusal = this.#reviving.has(id) ? undefined : this.#makeRoom(owner, options);
    if (refusal) return refusal;
    let revival = this.#reviving.get(id);
    if (!revival) {
      revival = this.#revive(id, owner, request, options).finally(() => this.#reviving.delete(id));
      this.#reviving.set(id, revival);
    }
    return revival;
  }

  async #revive(id: string, owner: Owner, { url, headers }: Request, options: McpHandlerRequestOptions) {
    const session = await this.#open(id, owner, callerOf(options.authInfo), options);
    const parsedBody = {
      jsonrpc: '2.0',
      id: 0,
      method: 'initialize',
      params: {
        // The first version of the protocol has no such header.
        protocolVersion: headers.get('mcp-protocol-version') ?? '2025-03-26',
        capabilities: id.split('.')[1] === ASKS ? { elicitation: {} } : {},
        clientInfo: { name: 'unknown', version: '0' },
      },
    };
    const accept = 'application/json, text/event-stream';
    const handshake = new Request(url, {
      method: 'POST',
      headers: { accept, 'content-type': 'application/json' },
      body: JSON.stringify(parsedBody),
    });
    const response = await this.#call(id, session, handshake, { ...options, parsedBody });
    await response.body?.cancel();
    return this.#live.get(id);
  }

  #mint(owner: Owner, asks: boolean): string {
    const payload = `${randomBytes(15).toString('base64url')}.${asks ? ASKS : '-'}`;
    return `${payload}.${this.#mac(payload, owner)}`;
  }

  #mac(payload: string, { credential }: Owner, [secret] = this.#options.secrets): string {
    return createHmac('sha256', secret).update(`${payload}\0${credential}`).digest('base64url').slice(0, 24);
  }

  /** Whether the service issued the id to the owner. */
  #isIssued(id: string, owner: Owner): boolean {
    const end = id.lastIndexOf('.');
    const actual = Buffer.from(id.slice(end + 1));
    return this.#options.secrets.some((secret) => {
      const expected = Buffer.from(this.#mac(id.slice(0, Math.max(0, end)), owner, [secret]));
      return actual.length === expected.length && timingSafeEqual(actual, expected);
    });
  }

  /** Makes room for a session. @returns a refusal if there is none */
  #makeRoom(owner: Owner, { parsedBody }: McpHandlerRequestOptions): Response | undefined {
    const room = roomFor(owner, this.#live);
    if ('refusal' in room)
      return rpcError(room.status, SERVER_ERROR, room.refusal, { 'retry-after': RETRY_SECONDS }, idOf(parsedBody));
    if (room.evicts) this.#drop(room.evicts);
    return undefined;
  }

  #end(id: string): void {
    if (this.#ended.size >= ENDED_MAX) this.#ended.delete(this.#ended.values().next().value!);
    this.#ended.add(id);
    this.#drop(id);
  }

  /** Removes a session, and ends its stream and its questions. The session closes after its current calls. */
  #drop(id: string): void {
    const session = this.#live.get(id);
    if (!session) return;
    this.#live.delete(id);
    session.forget();
    session.dropped = true;
    session.transport.closeStandaloneSSEStream();
    for (const question of session.questions) question.abort();
    this.#close(session);
  }

  #close({ calls, server }: Session): void {
    if (!calls) void server.close().catch(() => {});
  }

  #sweep(): void {
    const oldest = Date.now() - (this.#options.idleMs ?? IDLE_MS);
    for (const [id, { seenAt, calls }] of this.#live) if (seenAt < oldest && !calls) this.#drop(id);
  }
}

/**
 * Begins a stream with a comment. Clients treat a stream as open after its first bytes, and the first event may take long.
 * In SSE, a line that begins with a colon is a comment.
 */
function withFirstBytes(response: Response): Response {
  if (!response.ok || !response.body) return response;
  const comment = new TextEncoder().encode(': open\n\n');
  const first = new TransformStream<Uint8Array, Uint8Array>({ start: (stream) => stream.enqueue(comment) });
  return new Response(response.body.pipeThrough(first), response);
}
