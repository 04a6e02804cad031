/**
 * Carries messages unchanged between a host and the hosted endpoint, in both protocol versions. The transport takes the
 * headers of each request from the message, and keeps the session of a 2025 client.
 */
import {
  isInitializeRequest,
  isJSONRPCNotification,
  isJSONRPCRequest,
  type JSONRPCMessage,
  type JSONRPCNotification,
  type JSONRPCRequest,
  PROTOCOL_VERSION_META_KEY,
  type RequestId,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { BROKEN_OFF, type Failure, failureOf } from './failure.ts';

export interface PipeOptions {
  endpoint: URL;
  apiKey: string | undefined;
  userAgent: string;
  /** Sends a message to the host. */
  deliver: (message: JSONRPCMessage) => void;
  /** Reports failures that have no request to answer. The sentence holds no value of a message. */
  warn: (sentence: string) => void;
}

/** A request without an answer yet. */
interface Exchange {
  modern: boolean;
  abort: AbortController;
  /** Resolves when the request is answered or cancelled. */
  exchanged: Promise<void>;
  over: () => void;
}

/** Hosts wait two seconds after they close our input; the pipe waits for two things within that time. */
const FAREWELL_MS = 600;
const [RETRY_MS, RETRY_MAX_MS] = [500, 30_000];

export class Pipe {
  readonly #options: PipeOptions;
  readonly #upstream: StreamableHTTPClientTransport;
  readonly #exchanges = new Map<RequestId, Exchange>();
  /** Messages sent right after `initialize` wait until there is a session. */
  #handshake: Promise<void> = Promise.resolve();
  #handshakeId: RequestId | undefined;
  #streamRefused = false;
  /** The host's subscriptions by URI. */
  readonly #subscriptions = new Map<unknown, JSONRPCRequest>();
  #streams = 0;
  #wake = () => {};

  constructor(options: PipeOptions) {
    this.#options = options;
    const { endpoint, apiKey, userAgent } = options;
    const headers = { 'user-agent': userAgent, ...(apiKey && { authorization: `Bearer ${apiKey}` }) };
    this.#upstream = new StreamableHTTPClientTransport(endpoint, {
      requestInit: { headers },
      fetch: (url, init) => this.#fetch(url, init),
      reconnectionOptions: {
        initialReconnectionDelay: RETRY_MS,
        reconnectionDelayGrowFactor: 2,
        maxReconnectionDelay: RETRY_MAX_MS,
        maxRetries: Number.MAX_SAFE_INTEGER,
      },
      // The endpoint refused the stream, so another try would only count against the rate limits.
      reconnectionScheduler: (reconnect, delay) => {
        const timer = this.#streamRefused ? undefined : setTimeout(reconnect, delay);
        return () => clearTimeout(timer);
      },
    });
    this.#upstream.onmessage = (message) => {
      // An answer proves that the endpoint is back.
      this.#wake();
      this.#answered(message);
    };
  }

  start(): Promise<void> {
    return this.#upstream.start();
  }

  /** Carries a message of the host to the endpoint. Each request gets an answer, unless the host cancels it. */
  async forward(message: JSONRPCMessage): Promise<void> {
    if (isJSONRPCRequest(message)) return this.#request(message);
    if (isJSONRPCNotification(message) && message.method === 'notifications/cancelled') return this.#cancel(message);
    return this.#tell(message);
  }

  /** Gives open requests a moment to finish, ends the session, and closes the transport. */
  async stop(): Promise<void> {
    await atMost(FAREWELL_MS, Promise.all([...this.#exchanges.values()].map(({ exchanged }) => exchanged)));
    await atMost(FAREWELL_MS, this.#upstream.terminateSession());
    await this.#upstream.close();
  }

  async #request(message: JSONRPCRequest): Promise<void> {
    const { id, method, params } = message;
    const modern = typeof params?._meta?.[PROTOCOL_VERSION_META_KEY] === 'string';
    const opens = isInitializeRequest(message);
    const { promise: exchanged, resolve: over } = withResolvers();
    const exchange = { modern, abort: new AbortController(), exchanged, over };
    this.#exchanges.set(id, exchange);
    if (method === 'resources/subscribe') this.#subscriptions.set(params?.uri, message);
    if (method === 'resources/unsubscribe') this.#subscriptions.delete(params?.uri);
    if (opens) [this.#handshake, this.#handshakeId] = [exchanged, id];
    else if (!modern) await this.#handshake;
    const isOpen = () => this.#exchanges.get(id) === exchange;
    if (!isOpen()) return;
    const fail = (error: Failure) => {
      if (isOpen()) this.#answered({ jsonrpc: '2.0', id, error });
    };
    this.#upstream
      .send(message, { requestSignal: exchange.abort.signal, onRequestStreamEnd: () => fail(BROKEN_OFF) })
      .catch((error: unknown) => fail(this.#failureOf(error)));
    return exchanged;
  }

  #answered(message: JSONRPCMessage): void {
    const { deliver } = this.#options;
    if ('method' in message) {
      deliver(message);
      return;
    }
    const exchange = message.id === undefined ? undefined : this.#exchanges.get(message.id);
    if (!exchange) return;
    this.#exchanges.delete(message.id!);
    if (message.id === this.#handshakeId && 'result' in message)
      this.#upstream.setProtocolVersion(String(message.result.protocolVersion));
    deliver(message);
    exchange.over();
  }

  /** Closes the stream of the request in the modern version; sends the cancellation within a session. */
  async #cancel(message: JSONRPCNotification): Promise<void> {
    const id = message.params?.requestId as RequestId;
    const exchange = this.#exchanges.get(id);
    if (!exchange) return;
    this.#exchanges.delete(id);
    if (!exchange.modern) await this.#tell(message);
    exchange.abort.abort();
    exchange.over();
  }

  async #tell(message: JSONRPCMessage): Promise<void> {
    await this.#handshake;
    await this.#upstream.send(message).catch((error: unknown) => {
      this.#options.warn(`A message without an answer did not arrive. ${this.#failureOf(error).message}`);
    });
  }

  /** Retries the stream of updates until it opens, so that it survives an absence of the endpoint. */
  async #fetch(url: string | URL, init: RequestInit = {}): Promise<Response> {
    if (init.method !== 'GET') return fetch(url, init);
    for (let delay = RETRY_MS; ; delay = Math.min(delay * 2, RETRY_MAX_MS)) {
      try {
        const response = await fetch(url, init);
        this.#streamRefused = !response.ok;
        if (response.ok && this.#streams++ > 0) this.#subscribeAgain();
        return response;
      } catch (error) {
        if (init.signal?.aborted) throw error;
      }
      await new Promise<void>((resume) => {
        this.#wake = resume;
        setTimeout(resume, delay);
      });
    }
  }

  /** A restarted endpoint knows the session but not its subscriptions. The pipe drops the answers. */
  #subscribeAgain(): void {
    for (const [uri, message] of this.#subscriptions)
      this.#upstream.send({ ...message, id: `freehold-mcp ${uri}` }).catch(() => {});
  }

  #failureOf(error: unknown): Failure {
    const { endpoint, apiKey } = this.#options;
    return failureOf(error, endpoint, apiKey !== undefined);
  }
}

const atMost = (ms: number, work: Promise<unknown>): Promise<unknown> =>
  Promise.race([work.catch(() => {}), new Promise((resume) => setTimeout(resume, ms))]);

/** Promise.withResolvers came with Node 22. */
function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
