/** A receiver of webhooks on loopback. It verifies each message as a customer would, with npm's standardwebhooks. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';

export interface Received {
  headers: Record<string, string>;
  raw: string;
  // biome-ignore lint/suspicious/noExplicitAny: each test checks the type of the members that it reads
  body: any;
}

export interface Receiver {
  url: string;
  port: number;
  received: Received[];
  /** The number of connections. */
  connections(): number;
  /** Answers a message. Default: 204. */
  answer: (response: ServerResponse, request: IncomingMessage) => void;
  close(): Promise<void>;
}

export async function startReceiver(port = 0, host = '127.0.0.1'): Promise<Receiver> {
  let connections = 0;
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const raw = Buffer.concat(chunks).toString('utf8');
    receiver.received.push({ headers: request.headers as Record<string, string>, raw, body: raw && JSON.parse(raw) });
    receiver.answer(response, request);
  });
  server.on('connection', () => connections++).listen(port, host);
  await once(server, 'listening');
  const address = server.address() as AddressInfo;
  const receiver: Receiver = {
    url: `http://127.0.0.1:${address.port}/hook`,
    port: address.port,
    received: [],
    connections: () => connections,
    answer: (response) => void response.writeHead(204).end(),
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return receiver;
}

/** @throws if the signature or the time is wrong */
export const verify = (secret: string, { raw, headers }: Pick<Received, 'raw' | 'headers'>): unknown =>
  new Webhook(secret).verify(raw, headers);
