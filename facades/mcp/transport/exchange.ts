/** Carries a request from Node to the web-standard handler of the SDK, and its response back. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type AuthInfo, INTERNAL_ERROR, type McpHandlerRequestOptions } from '@modelcontextprotocol/server';
import { idOf, rpcError } from './rpc.ts';

export interface ExchangeOptions {
  fetch(request: Request, options: McpHandlerRequestOptions): Promise<Response>;
  onError: (error: Error) => void;
  /** Returns the parts to write for a rendered chunk. */
  fill: (chunk: Uint8Array) => Uint8Array[];
  /** Called after each write, with the response whose bytes may wait. */
  onWrite: (response: ServerResponse) => void;
}

/** A response without a body ends at once. Writes do not wait for the reader: `onWrite` bounds what waits for it. */
export function exchanger({ fetch, onError, fill, onWrite }: ExchangeOptions) {
  return async (raw: IncomingMessage, reply: ServerResponse, authInfo: AuthInfo, parsedBody: unknown) => {
    const disconnect = new AbortController();
    reply.once('close', () => {
      if (!reply.writableFinished) disconnect.abort();
    });
    if (reply.destroyed) disconnect.abort();
    const options = { authInfo, ...(parsedBody !== undefined && { parsedBody }) };
    let response: Response;
    try {
      response = await fetch(webRequest(raw, disconnect.signal), options);
    } catch (error) {
      onError(error as Error);
      response = rpcError(500, INTERNAL_ERROR, 'Internal server error', {}, idOf(parsedBody));
    }
    // Node decides whether the connection stays open, because a client may ask to close it.
    response.headers.delete('connection');
    reply.writeHead(response.status, Object.fromEntries(response.headers));
    const write = (chunk: Uint8Array) => {
      for (const part of fill(chunk)) reply.write(part);
      onWrite(reply);
    };
    if (response.body) await pump(response.body, disconnect.signal, write);
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

/** The request without its body, which the SDK gets as a value. */
function webRequest({ method = 'GET', url, headers: sent }: IncomingMessage, signal: AbortSignal): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(sent)) for (const one of [value ?? []].flat()) headers.append(name, one);
  return new Request(new URL(url!, 'http://localhost'), { method, headers, signal });
}
