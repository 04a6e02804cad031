/**
 * Two eras behind one address: 2026-07-28, in which every request stands alone, and the revisions of 2025, whose clients
 * have sessions.
 */
import {
  createMcpHandler,
  InMemoryServerEventBus,
  isLegacyRequest,
  type McpHandlerRequestOptions,
  PROTOCOL_VERSION_META_KEY,
} from '@modelcontextprotocol/server';
import { isRecord } from '../compile/inputs.ts';
import { callerOf } from './caller.ts';
import type { McpParts } from './parts.ts';
import { rpcError, SERVER_ERROR } from './rpc.ts';
import { type SessionOptions, Sessions } from './sessions.ts';
import { Subscriptions } from './subscriptions.ts';

export interface ErasOptions extends SessionOptions {
  parts: McpParts;
}

/** Serves web-standard requests whose `authInfo` carries the caller. */
export class Eras {
  readonly #sessions: Sessions;
  readonly #options: ErasOptions;
  readonly #modern: ReturnType<typeof createMcpHandler>;
  readonly #streams = new Set<ReturnType<typeof createMcpHandler>>();
  #closed = false;

  constructor(options: ErasOptions) {
    this.#options = options;
    this.#sessions = new Sessions(options);
    this.#modern = createMcpHandler(options.factory, { legacy: 'reject', onerror: options.onError });
  }

  readonly fetch = async (request: Request, options: McpHandlerRequestOptions = {}): Promise<Response> => {
    const { parsedBody } = options;
    // Who comes on a connection that is still open would keep it, and the listener would never close.
    if (this.#closed) return rpcError(503, SERVER_ERROR, 'The service stops: try again.', { connection: 'close' });
    if (!claimsRevision(parsedBody) && (await isLegacyRequest(request, parsedBody)))
      return this.#sessions.fetch(request, options);
    const listens = isRecord(parsedBody) && parsedBody.method === 'subscriptions/listen';
    return listens ? this.#listen(request, parsedBody, options) : this.#modern.fetch(request, options);
  };

  /** Ends all streams, and serves nothing any more. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#sessions.close();
    for (const stream of this.#streams) await stream.close();
    await this.#modern.close();
  }

  /**
   * A stream of updates. It has a bus of its own, which carries what its credential may read and nothing else; the SDK
   * has one bus for all streams, and would tell everybody. It ends with the credential.
   */
  async #listen(request: Request, message: Record<string, unknown>, options: McpHandlerRequestOptions) {
    const { factory, parts, onError, onCredentialEnd } = this.#options;
    const caller = callerOf(options.authInfo);
    const bus = new InMemoryServerEventBus(onError);
    const over = new AbortController();
    const signal = AbortSignal.any([request.signal, over.signal]);
    const subscriptions = new Subscriptions(parts, (uri) => bus.publish({ kind: 'resource_updated', uri }));
    const parsedBody = await onlyGranted(message, (uri) => subscriptions.add(uri, { ...caller, signal }));
    const stream = createMcpHandler(factory, { legacy: 'reject', bus, onerror: onError });
    const forget = caller.viewer ? onCredentialEnd(caller.viewer, () => over.abort()) : () => {};
    this.#streams.add(stream);
    const end = () => {
      forget();
      subscriptions.close();
      this.#streams.delete(stream);
    };
    signal.addEventListener('abort', end, { once: true });
    const { url, method, headers } = request;
    const body = JSON.stringify(parsedBody);
    const response = await stream.fetch(new Request(url, { method, headers, body, signal }), {
      ...options,
      parsedBody,
    });
    if (this.#closed) await stream.close();
    if (!response.ok) end();
    return response;
  }
}

/** Whether it names its revision, as only the newer era does; the SDK looks at it again when it serves it. */
const claimsRevision = (message: unknown): boolean =>
  isRecord(message) &&
  isRecord(message.params) &&
  isRecord(message.params._meta) &&
  message.params._meta[PROTOCOL_VERSION_META_KEY] !== undefined;

/** The message, subscribing to what may be subscribed to alone; the client is told which that is. */
async function onlyGranted(
  message: Record<string, unknown>,
  add: (uri: string) => Promise<void>,
): Promise<Record<string, unknown>> {
  const params = isRecord(message.params) ? message.params : {};
  const notifications = isRecord(params.notifications) ? params.notifications : {};
  const { resourceSubscriptions: asked } = notifications;
  if (!Array.isArray(asked)) return message;
  const granted: string[] = [];
  for (const uri of new Set(asked)) {
    if (typeof uri !== 'string') continue;
    await add(uri).then(
      () => granted.push(uri),
      () => {},
    );
  }
  return { ...message, params: { ...params, notifications: { ...notifications, resourceSubscriptions: granted } } };
}
