/**
 * Serves two generations of the protocol at one address. Requests of 2026-07-28 are independent. Clients of the versions of
 * 2025 have sessions.
 */
import {
  createMcpHandler,
  InMemoryServerEventBus,
  isLegacyRequest,
  type McpHandlerRequestOptions,
  PROTOCOL_VERSION_META_KEY,
  ProtocolError,
} from '@modelcontextprotocol/server';
import { ApiError } from '../../../schema/index.ts';
import { isRecord } from '../../compile/inputs.ts';
import { callerOf, type McpCaller } from '../caller.ts';
import type { McpParts } from '../parts.ts';
import { Subscriptions } from '../subscriptions.ts';
import { afterBody } from './response-body.ts';
import { idOf, rpcError, SERVER_ERROR } from './rpc.ts';
import { type SessionOptions, Sessions } from './sessions.ts';

export interface ProtocolVersionsOptions extends SessionOptions {
  parts: McpParts;
}

/** Serves web-standard requests. Their `authInfo` has the caller. */
export class ProtocolVersions {
  readonly #sessions: Sessions;
  readonly #options: ProtocolVersionsOptions;
  readonly #modern: ReturnType<typeof createMcpHandler>;
  readonly #streams = new Set<ReturnType<typeof createMcpHandler>>();
  #closed = false;

  constructor(options: ProtocolVersionsOptions) {
    this.#options = options;
    this.#sessions = new Sessions(options);
    this.#modern = createMcpHandler(options.factory, { legacy: 'reject', onerror: options.onError });
  }

  readonly fetch = async (request: Request, options: McpHandlerRequestOptions = {}): Promise<Response> => {
    const { parsedBody } = options;
    // A request on an open connection would keep the connection, and the listener would never close.
    if (this.#closed)
      return rpcError(503, SERVER_ERROR, 'The service is stopping. Try again.', { connection: 'close' });
    if (!namesVersion(parsedBody) && (await isLegacyRequest(request, parsedBody)))
      return this.#sessions.fetch(request, options);
    const listens = isRecord(parsedBody) && parsedBody.method === 'subscriptions/listen';
    return listens ? this.#listen(request, parsedBody, options) : this.#modern.fetch(request, options);
  };

  /** Ends all streams, and refuses further requests. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#sessions.close();
    for (const stream of this.#streams) await stream.close();
    await this.#modern.close();
  }

  /**
   * A stream of updates, which ends with the credential. It has a bus of its own for the updates that its credential may
   * read. The SDK's single bus would send them to every stream.
   */
  async #listen(request: Request, message: Record<string, unknown>, options: McpHandlerRequestOptions) {
    const { factory, parts, onError, onCredentialEnd } = this.#options;
    const caller = callerOf(options.authInfo);
    const bus = new InMemoryServerEventBus(onError);
    const id = idOf(message);
    // Node would keep a signal of AbortSignal.any with its listeners until it aborts, and a stream may end before.
    const over = new AbortController();
    const { signal } = over;
    request.signal.addEventListener('abort', () => over.abort(), { once: true });
    if (request.signal.aborted) over.abort();
    const subscriptions = new Subscriptions({
      parts,
      notify: (uri) => bus.publish({ kind: 'resource_updated', uri }),
      onEnd: () => over.abort(),
    });
    const credential = caller.viewer && onCredentialEnd(caller.viewer, () => over.abort());
    const stream = createMcpHandler(factory, { legacy: 'reject', bus, onerror: onError });
    const end = () => {
      credential?.forget();
      subscriptions.close();
      this.#streams.delete(stream);
    };
    const refuse = (status: number, reason: string) => {
      end();
      return rpcError(status, SERVER_ERROR, reason, {}, id);
    };
    try {
      const parsedBody = await withGranted(message, (uri) => subscriptions.add(uri, { ...caller, signal }), caller);
      if (parsedBody instanceof ProtocolError) return refuse(200, parsedBody.message);
      await credential?.checked;
      if (signal.aborted) return refuse(503, 'The credential may have ended. Try again.');
      this.#streams.add(stream);
      // The Request follows its signal only until the garbage collector takes the Request.
      signal.addEventListener('abort', () => void stream.close());
      const { url, method, headers } = request;
      const body = JSON.stringify(parsedBody);
      const response = await stream.fetch(new Request(url, { method, headers, body, signal }), {
        ...options,
        parsedBody,
      });
      if (this.#closed) await stream.close();
      // The end of the stream ends the body as well.
      return afterBody(response, end);
    } catch (error) {
      end();
      throw error;
    }
  }
}

/** Whether the message names its protocol version, as only the newer generation does. The SDK checks the version later. */
const namesVersion = (message: unknown): boolean =>
  isRecord(message) &&
  isRecord(message.params) &&
  isRecord(message.params._meta) &&
  message.params._meta[PROTOCOL_VERSION_META_KEY] !== undefined;

/**
 * Returns the message with only the subscriptions that the client may have. The SDK reports them to the client.
 * @returns the refusal, if a limit refuses one
 */
async function withGranted(
  message: Record<string, unknown>,
  add: (uri: string) => Promise<void>,
  { viewer, count }: McpCaller,
): Promise<Record<string, unknown> | ProtocolError> {
  const params = isRecord(message.params) ? message.params : {};
  const notifications = isRecord(params.notifications) ? params.notifications : {};
  const { resourceSubscriptions: requested } = notifications;
  if (!Array.isArray(requested)) return message;
  const granted: string[] = [];
  for (const [i, uri] of [...new Set(requested)].entries()) {
    if (typeof uri !== 'string') continue;
    try {
      // The message has counted for the first resource.
      if (i) await count(viewer);
      await add(uri);
      granted.push(uri);
    } catch (error) {
      if (error instanceof ApiError) return new ProtocolError(SERVER_ERROR, error.message);
      if (error instanceof ProtocolError && isRecord(error.data) && error.data.code === 'rate_limited') return error;
    }
  }
  return { ...message, params: { ...params, notifications: { ...notifications, resourceSubscriptions: granted } } };
}
