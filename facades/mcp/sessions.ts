/**
 * Sessions of the clients of 2025: they carry updates and questions to the user. An id is bound to the credential by a
 * MAC, and says by itself that we have given it; so a session that this process does not know (it was started anew, or the
 * client came to another process) is opened again under its id instead of being refused.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import {
  INVALID_PARAMS,
  isInitializeRequest,
  type LegacyHttpHandler,
  legacyStatelessFallback,
  type McpHandlerRequestOptions,
  type McpServerFactory,
  type Server,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { isRecord } from '../compile/inputs.ts';
import type { OnCredentialEnd } from '../compile/run.ts';
import { callerOf, type McpCaller } from './caller.ts';
import { rpcError, SERVER_ERROR } from './rpc.ts';

export interface SessionOptions {
  factory: McpServerFactory;
  secret: Buffer;
  onCredentialEnd: OnCredentialEnd;
  onError: (error: Error) => void;
  idleMs?: number;
}

interface Session {
  transport: WebStandardStreamableHTTPServerTransport;
  server: Server;
  owner: string;
  seenAt: number;
  /** POST requests that are still being answered. */
  calls: number;
  /** It is dropped, and closes with the answer to its last call. */
  dropped: boolean;
  forget: () => void;
}

const SESSIONS_MAX = 2_000;
/** So that one client cannot crowd out the others. */
const OWNER_MAX = 50;
const ENDED_MAX = 10_000;
const IDLE_MS = 30 * 60_000;
const NOT_FOUND = -32_001;
/** In the id of a session whose client can ask its user. */
const ASKS = 'a';

export class Sessions {
  readonly #options: SessionOptions;
  readonly #once: LegacyHttpHandler;
  /** In the order in which they were used. */
  readonly #live = new Map<string, Session>();
  readonly #reviving = new Map<string, Promise<Session | undefined>>();
  readonly #ended = new Set<string>();
  readonly #sweeper: NodeJS.Timeout;
  #closed = false;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#once = legacyStatelessFallback(options.factory, options.onError);
    this.#sweeper = setInterval(() => this.#sweep(), 60_000).unref();
  }

  async fetch(request: Request, options: McpHandlerRequestOptions): Promise<Response> {
    const caller = callerOf(options.authInfo);
    const id = request.headers.get('mcp-session-id');
    if (id === null) return this.#withoutSession(request, options, caller);
    const owner = ownerOf(caller);
    if (!this.#isOurs(id, owner) || this.#ended.has(id)) return rpcError(404, NOT_FOUND, 'There is no such session.');
    const session = this.#live.get(id) ?? (await this.#revived(id, request, options));
    if (!session) return rpcError(400, SERVER_ERROR, 'The session cannot be opened again: initialize anew.');
    session.seenAt = Date.now();
    this.#live.delete(id);
    this.#live.set(id, session);
    if (request.method === 'GET') {
      const stream = await session.transport.handleRequest(request, options);
      if (this.#closed) this.#drop(id);
      return begun(stream);
    }
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

  /** Ends all streams, and those that are on their way; calls are answered. The clients come back with their ids. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#sweeper);
    for (const id of [...this.#live.keys()]) this.#drop(id);
  }

  async #withoutSession(request: Request, options: McpHandlerRequestOptions, caller: McpCaller): Promise<Response> {
    const messages = [options.parsedBody].flat();
    const initialize = messages.find(isInitializeRequest);
    if (!initialize) {
      const wrong = messages.filter(isRecord).find(({ method, id }) => method === 'initialize' && id !== undefined);
      if (wrong) return rpcError(400, INVALID_PARAMS, 'Invalid params of initialize.', {}, wrong.id);
      if (request.method === 'POST') return this.#once(request, options);
      return rpcError(405, SERVER_ERROR, 'Without a session there is only POST.', { allow: 'POST' });
    }
    const owner = ownerOf(caller);
    const asks = initialize.params.capabilities.elicitation !== undefined;
    const { transport } = await this.#open(this.#mint(owner, asks), owner, caller, options);
    return transport.handleRequest(request, options);
  }

  async #open(id: string, owner: string, { viewer }: McpCaller, { authInfo }: McpHandlerRequestOptions) {
    const server = (await this.#options.factory({ era: 'legacy', ...(authInfo && { authInfo }) })) as Server;
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      onsessioninitialized: () => {
        this.#makeRoom(owner);
        const forget = viewer ? this.#options.onCredentialEnd(viewer, () => this.#drop(id)) : () => {};
        this.#live.set(id, { transport, server, owner, seenAt: Date.now(), calls: 0, dropped: false, forget });
      },
      onsessionclosed: () => this.#end(id),
    });
    await server.connect(transport);
    return { transport, server };
  }

  /** Repeats the handshake in the place of the client. @returns undefined if that was refused */
  async #revived(id: string, request: Request, options: McpHandlerRequestOptions): Promise<Session | undefined> {
    if (request.method === 'DELETE') this.#end(id);
    let revival = this.#reviving.get(id);
    if (!revival) {
      revival = this.#revive(id, request, options).finally(() => this.#reviving.delete(id));
      this.#reviving.set(id, revival);
    }
    return revival;
  }

  async #revive(id: string, { url, headers }: Request, options: McpHandlerRequestOptions) {
    const caller = callerOf(options.authInfo);
    const { transport } = await this.#open(id, ownerOf(caller), caller, options);
    const parsedBody = {
      jsonrpc: '2.0',
      id: 0,
      method: 'initialize',
      params: {
        // The first revision knew no such header.
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
    const response = await transport.handleRequest(handshake, { ...options, parsedBody });
    await response.body?.cancel();
    return this.#live.get(id);
  }

  #mint(owner: string, asks: boolean): string {
    const open = `${randomBytes(15).toString('base64url')}.${asks ? ASKS : '-'}`;
    return `${open}.${this.#mac(open, owner)}`;
  }

  #mac(open: string, owner: string): string {
    return createHmac('sha256', this.#options.secret).update(`${open}\0${owner}`).digest('base64url').slice(0, 24);
  }

  #isOurs(id: string, owner: string): boolean {
    const end = id.lastIndexOf('.');
    const given = Buffer.from(id.slice(end + 1));
    const due = Buffer.from(this.#mac(id.slice(0, Math.max(0, end)), owner));
    return given.length === due.length && timingSafeEqual(given, due);
  }

  #makeRoom(owner: string): void {
    const own = [...this.#live].filter(([, session]) => session.owner === owner);
    if (own.length >= OWNER_MAX) this.#drop(own[0]![0]);
    if (this.#live.size >= SESSIONS_MAX) this.#drop(this.#live.keys().next().value!);
  }

  #end(id: string): void {
    if (this.#ended.size >= ENDED_MAX) this.#ended.delete(this.#ended.values().next().value!);
    this.#ended.add(id);
    this.#drop(id);
  }

  /** Takes no more requests of a session, and ends its stream. Calls that are under way are answered first. */
  #drop(id: string): void {
    const session = this.#live.get(id);
    if (!session) return;
    this.#live.delete(id);
    session.forget();
    session.dropped = true;
    session.transport.closeStandaloneSSEStream();
    this.#close(session);
  }

  #close({ calls, server }: Session): void {
    if (!calls) void server.close().catch(() => {});
  }

  #sweep(): void {
    const before = Date.now() - (this.#options.idleMs ?? IDLE_MS);
    for (const [id, { seenAt }] of this.#live) if (seenAt < before) this.#drop(id);
  }
}

/** Sessions without a credential have nothing that another could not see. */
const ownerOf = ({ viewer }: McpCaller): string => viewer?.credentialId ?? '';

/** The same response; `ended` is called when its body was sent, or its client is gone. */
function afterBody(response: Response, ended: () => void): Response {
  if (!response.body) {
    ended();
    return response;
  }
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  void response.body
    .pipeTo(writable)
    .catch(() => {})
    .finally(ended);
  return new Response(readable, response);
}

/**
 * A client takes a stream for open when its first bytes come, and for refused if it breaks before; the first event may be
 * long in coming. A comment is none (it begins with a colon).
 */
function begun(response: Response): Response {
  if (!response.ok || !response.body) return response;
  const comment = new TextEncoder().encode(': open\n\n');
  const first = new TransformStream<Uint8Array, Uint8Array>({ start: (stream) => stream.enqueue(comment) });
  return new Response(response.body.pipeThrough(first), response);
}
