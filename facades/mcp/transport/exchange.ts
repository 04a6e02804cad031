/** Carries a request from Node to the web-standard handler of the SDK, and its response back. */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { type AuthInfo, INTERNAL_ERROR, type McpHandlerRequestOptions } from '@modelcontextprotocol/server';
import { disconnectOf } from '../../http/connections.ts';
import { idOf, rpcError } from './rpc.ts';

export interface ExchangeOptions {
  fetch(request: Request, options: McpHandlerRequestOptions): Promise<Response>;
  onError: (error: Error) => void;
  /** Returns the parts to write for a rendered chunk. */
  fill: (chunk: Uint8Array) => Uint8Array[];
  /** Called after each write, with the response whose bytes may wait. */
  onWrite: (response: ServerResponse) => void;
}

/** A request as the SDK gets it. */
export interface Exchange {
  authInfo: AuthInfo;
  /** Returns the parsed body, and keeps it no longer. Undefined without a body. */
  takeBody: () => unknown;
  /** Go out beside those of the SDK. */
  headers: OutgoingHttpHeaders;
}

/** A response without a body ends at once. Writes do not wait for the reader: `onWrite` bounds what waits for it. */
export function exchanger({ fetch, onError, fill, onWrite }: ExchangeOptions) {
  /** An async function would keep the body until its end. */
  const begin = (raw: IncomingMessage, signal: AbortSignal, { authInfo, takeBody }: Exchange): Promise<Response> => {
    const parsedBody = takeBody();
    const [id, hasBody] = [idOf(parsedBody), parsedBody !== undefined];
    return fetch(webRequest(raw, signal, hasBody), { authInfo, ...(hasBody && { parsedBody }) }).catch(
      (error: Error) => {
        onError(error);
        return rpcError(500, INTERNAL_ERROR, 'Internal server error', {}, id);
      },
    );
  };
  return async (raw: IncomingMessage, reply: ServerResponse, exchange: Exchange) => {
    const { headers } = exchange;
    const disconnected = disconnectOf(reply);
    const response = await begin(raw, disconnected, exchange);
    // Node decides whether the connection stays open, because a client may ask to close it.
    response.headers.delete('connection');
    const head = { ...headers, ...Object.fromEntries(response.headers) };
    if (head['content-type'] === 'application/json') {
      // With its length, a whole answer leaves in one write.
      const parts = fill(await response.bytes());
      reply.writeHead(response.status, {
        ...head,
        'content-length': parts.reduce((sum, { length }) => sum + length, 0),
      });
      for (const part of parts.slice(0, -1)) reply.write(part);
      reply.end(parts.at(-1));
      return onWrite(reply);
    }
    const write = (chunk: Uint8Array) => {
      for (const part of fill(chunk)) reply.write(part);
      onWrite(reply);
    };
    reply.writeHead(response.status, head);
    if (response.body) await pump(response.body, disconnected, write);
    reply.end();
  };
}

async function pump(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
  write: (chunk: Uint8Array) => void,
): Promise<void> {
  const reader = body.getReader();
  const cancel = () => void reader.cancel().catch(() => {});
  signal.addEventListener('abort', cancel, { once: true });
  if (signal.aborted) cancel();
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) write(read.value);
  } catch {
    // The stream ended with its session or its credential.
  }
}

/** The headers of a request, as the SDK reads them. Node joins repeated ones. */
class ReceivedHeaders {
  readonly #headers: IncomingMessage['headers'];

  constructor(headers: IncomingMessage['headers']) {
    this.#headers = headers;
  }

  get(name: string): string | null {
    const value = this.#headers[name.toLowerCase()];
    return value === undefined ? null : String(value);
  }

  *[Symbol.iterator](): Generator<[string, string]> {
    for (const name of Object.keys(this.#headers)) yield [name, this.get(name)!];
  }
}

/**
 * The request without its body, which the SDK gets as a value. Beside a body, the SDK reads few members. The Request of Node
 * would cost more than the work of a small tool.
 */
function webRequest(
  { method = 'GET', url: path, headers }: IncomingMessage,
  signal: AbortSignal,
  hasBody: boolean,
): Request {
  const [url, received] = [`http://localhost${path}`, new ReceivedHeaders(headers)];
  if (hasBody) return { method, url, headers: received, signal } as unknown as Request;
  return new Request(url, { method, headers: [...received], signal });
}
