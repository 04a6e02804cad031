/** Carries a request from Node to the web-standard handler of the SDK, and its response back. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type AuthInfo, INTERNAL_ERROR, type McpHandlerRequestOptions } from '@modelcontextprotocol/server';
import { idOf, rpcError } from './rpc.ts';

export interface ExchangeOptions {
  fetch(request: Request, options: McpHandlerRequestOptions): Promise<Response>;
  onError: (error: Error) => void;
  /** Called after each write, with the response whose bytes may wait. */
  onWrite: (response: ServerResponse) => void;
}

/** A response without a body ends at once. Writes do not wait for the reader: `onWrite` bounds what waits for it. */
export function exchanger({ fetch, onError, onWrite }: ExchangeOptions) {
  return async (raw: IncomingMessage, reply: ServerResponse, authInfo: AuthInfo, parsedBody: unknown) => {
    const disconnect = new AbortController();
    reply.once('close', () => disconnect.abort());
    if (reply.destroyed) disconnect.abort();
    const options = { authInfo, ...(parsedBody !== undefined && { parsedBody }) };
    const response = await fetch(webRequest(raw, disconnect.signal), options).catch((error: Error) => {
      onError(error);
      return rpcError(500, INTERNAL_ERROR, 'Internal server error', {}, idOf(parsedBody));
    });
    reply.writeHead(response.status, Object.fromEntries(response.headers));
    if (response.body) await pump(response.body, disconnect.signal, reply, onWrite);
    reply.end();
  };
}

async function pump(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
  reply: ServerResponse,
  onWrite: ExchangeOptions['onWrite'],
): Promise<void> {
  const reader = body.getReader();
  const cancel = () => void reader.cancel().catch(() => {});
  signal.addEventListener('abort', cancel, { once: true });
  if (signal.aborted) cancel();
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      reply.write(read.value);
      onWrite(reply);
    }
  } catch {
    // The stream ended with its session or its credential.
  }
}

/** The request without its body, which the SDK gets as a value. */
function webRequest({ method = 'GET', url, headers: sent }: IncomingMessage, signal: AbortSignal): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(sent)) for (const one of [value ?? []].flat()) headers.append(name, one);
  return new Request(new URL(url!, `http://${sent.host ?? 'localhost'}`), { method, headers, signal });
}
