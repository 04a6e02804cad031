/** An HTTP proxy to a node. It can be closed, and counts requests. */
import { once } from 'node:events';
import { createServer, request } from 'node:http';

export interface Gate {
  url: string;
  /** Whether the proxy refuses every request. */
  closed: boolean;
  /** The number of forwarded requests. */
  passed: number;
  stop(): Promise<unknown>;
}

export async function openGate(to: string): Promise<Gate> {
  const server = createServer((from, answer) => {
    if (gate.closed) return void from.socket.destroy();
    gate.passed++;
    const onward = request(
      to,
      { method: from.method, headers: { ...from.headers, host: new URL(to).host } },
      (given) => {
        answer.writeHead(given.statusCode!, given.headers);
        given.pipe(answer);
      },
    );
    onward.on('error', () => from.socket.destroy());
    from.pipe(onward);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const gate: Gate = {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    closed: false,
    passed: 0,
    stop: () => {
      server.closeAllConnections();
      return new Promise((done) => server.close(done));
    },
  };
  return gate;
}
