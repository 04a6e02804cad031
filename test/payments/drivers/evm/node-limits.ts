/** A proxy for a node of an EVM chain. It limits calls as hosted nodes do, and may refuse a method. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

interface Asked {
  id: number;
  method: string;
  params: unknown[];
}

export interface LimitedNode {
  url: string;
  /** The calls that it still answers. It refuses a request with more of them with status 429. */
  left: number;
  /** The methods of all answered calls. */
  calls: string[];
  /** The error with which it refuses a method. */
  refuses: (method: string) => { code: number; message: string } | undefined;
  /** Replaces the result of a call. An error breaks the connection. */
  change: (method: string, result: unknown) => unknown;
  stop(): Promise<unknown>;
}

const BUSY = { code: 429, message: 'Your app has exceeded its compute units per second capacity.' };

export async function openLimitedNode(to: string): Promise<LimitedNode> {
  const answer = async (call: Asked) => {
    const error = node.refuses(call.method);
    if (error) return { id: call.id, error };
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(to, { method: 'POST', headers, body: JSON.stringify(call) });
    const answered = (await response.json()) as { result?: unknown };
    return 'result' in answered ? { ...answered, result: node.change(call.method, answered.result) } : answered;
  };
  const server = createServer(async (request, response) => {
    const body = JSON.parse((await request.toArray()).join('')) as Asked | Asked[];
    const asked = [body].flat();
    if (asked.length > node.left) return void response.writeHead(429).end(JSON.stringify({ id: 0, error: BUSY }));
    node.left -= asked.length;
    node.calls.push(...asked.map(({ method }) => method));
    const answers = await Promise.all(asked.map(answer)).catch(() => undefined);
    if (!answers) return void response.destroy();
    response.end(JSON.stringify(Array.isArray(body) ? answers : answers[0]));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const node: LimitedNode = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ...{ left: Number.POSITIVE_INFINITY, calls: [], refuses: () => undefined, change: (_, result) => result },
    stop: () => {
      server.closeAllConnections();
      return new Promise((done) => server.close(done));
    },
  };
  return node;
}
