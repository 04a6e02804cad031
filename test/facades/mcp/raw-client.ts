/** MCP over plain HTTP, for requests that no client sends. */
import { vi } from 'vitest';
import type { Database } from '../../../entities/database/database.ts';
import { eventually } from '../../setup/freehold.ts';

export const MODERN = '2026-07-28';

export type Headers = Record<string, string>;
export type Send = { method?: string; headers?: Headers; body?: unknown; without?: string[] };

/** Sends requests with a credential, unless the headers hold another one or omit it. */
export function rawClient(url: string, credential: string) {
  const usual: Headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    authorization: `Bearer ${credential}`,
  };

  /** Returns the HTTP status and the messages, from JSON or from a stream. */
  async function send({ method = 'POST', headers = {}, body, without = [] }: Send) {
    const sent: Headers = { ...usual, ...headers };
    for (const name of without) delete sent[name];
    const isRaw = typeof body === 'string' || body instanceof Buffer || body === undefined;
    const raw = isRaw ? body : JSON.stringify(body);
    const response = await fetch(url, { method, headers: sent, ...(raw !== undefined && { body: raw as string }) });
    const text = await response.text();
    const streams = response.headers.get('content-type')?.startsWith('text/event-stream');
    const lines = streams ? [...text.matchAll(/^data: (.+)$/gm)].map(([, data]) => data!) : [text];
    // biome-ignore lint/suspicious/noExplicitAny: the test checks the answers
    const messages: any[] = lines.filter(Boolean).map((line) => JSON.parse(line));
    const header = (name: string) => response.headers.get(name);
    return {
      status: response.status,
      messages,
      session: header('mcp-session-id'),
      /** The remaining calls, and the data of a refusal. */
      remaining: Number(header('x-ratelimit-remaining') ?? Number.NaN),
      retryAfter: header('retry-after'),
      data: messages[0]?.error?.data,
    };
  }

  /** Returns the HTTP status, and the id of each message with its error code if it has one. */
  async function outcome(request: Send) {
    const { status, messages } = await send(request);
    return [status, ...messages.map(({ id, error }) => (error ? [id, error.code] : id))];
  }

  return { send, outcome, usual };
}

/** Begins the calls. @returns once all of them wait for a change of a server, with their answers to come */
export async function whenWaiting<T>({ bus }: Pick<Database, 'bus'>, begin: () => Promise<T>[]): Promise<Promise<T>[]> {
  const waits = vi.spyOn(bus, 'changes');
  try {
    const calls = begin();
    await eventually(async () => waits.mock.calls.filter(([kind]) => kind === 'server').length >= calls.length);
    return calls;
  } finally {
    waits.mockRestore();
  }
}

export const rpc = (method: string, params?: object, id: unknown = 1) => ({ jsonrpc: '2.0', id, method, params });
export const notification = (method: string, params?: object) => ({ jsonrpc: '2.0', method, params });
export const call = (name: unknown, args?: unknown) => rpc('tools/call', { name, arguments: args });
export const INITIALIZE = {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'test', version: '1' },
};

export const envelope = (version: unknown = MODERN, capabilities: unknown = {}) => ({
  _meta: {
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  },
});
export const modern = (method: string, name?: string, version = MODERN): Headers => ({
  'mcp-protocol-version': version,
  'mcp-method': method,
  ...(name && { 'mcp-name': name }),
});
export const of2025 = (version: string): Headers => ({ 'mcp-protocol-version': version });
