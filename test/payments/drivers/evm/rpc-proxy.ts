/** A proxy for the RPC of a chain, which shows each call to the test first. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface RpcProxy {
  url: string;
  /** Runs before each call is forwarded; an error breaks the connection. */
  before: (method: string, parameters: unknown[]) => Promise<unknown> | unknown;
  /** The error that the node answers instead of forwarding the call. */
  refuse: (method: string) => string | undefined;
  stop(): Promise<void>;
}

export async function startRpcProxy(target: string): Promise<RpcProxy> {
  const server = createServer(async (request, response) => {
    try {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      const body = Buffer.concat(chunks).toString();
      const { id, method, params } = JSON.parse(body);
      await proxy.before(method, params ?? []);
      const message = proxy.refuse(method);
      if (message !== undefined) {
        response.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32000, message } }));
        return;
      }
      const answer = await fetch(target, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text());
    } catch {
      response.destroy();
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const proxy: RpcProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    before: () => {},
    refuse: () => undefined,
    stop: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
  return proxy;
}
