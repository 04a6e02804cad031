/** Connections as Tor opens them for an onion service with `HiddenServiceExportCircuitID haproxy`. */
import { once } from 'node:events';
import { request } from 'node:http';
import { connect, type NetConnectOpts, type Socket } from 'node:net';

/** The line that Tor prints for a circuit. */
export const lineOf = (circuit: number) => `PROXY TCP6 ${addressOf(circuit)} ::1 ${circuit & 0xffff} 80\r\n`;
export const addressOf = (circuit: number) =>
  `fc00:dead:beef:4dad::${(circuit >>> 16).toString(16)}:${(circuit & 0xffff).toString(16)}`;

/** Opens a connection. The line goes first, unless it is empty. */
export async function openCircuit(at: NetConnectOpts, line: number | string): Promise<Socket> {
  const socket = connect(at).on('error', () => {});
  await once(socket, 'connect');
  socket.write(typeof line === 'number' ? lineOf(line) : line);
  return socket;
}

export interface Answer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: each test checks the type of an answer
  body: any;
  headers: Record<string, string | string[] | undefined>;
}

/** Sends a request over a circuit, on a connection of its own. */
export async function overCircuit(
  at: NetConnectOpts,
  circuit: number,
  [method, path, body]: [string, string, object?],
  headers: Record<string, string> = {},
): Promise<Answer> {
  const socket = await openCircuit(at, circuit);
  return new Promise((done, fail) => {
    const options = { method, path, createConnection: () => socket };
    const sent = request({ ...options, headers: { 'content-type': 'application/json', ...headers } }, async (reply) => {
      const text = Buffer.concat(await reply.toArray()).toString();
      socket.destroy();
      done({ status: reply.statusCode!, body: text && JSON.parse(text), headers: reply.headers });
    });
    sent.on('error', fail).end(body && JSON.stringify(body));
  });
}
