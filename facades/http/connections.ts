/**
 * Limits how many connections a network may have to the public listener. Through a trusted proxy the connections are the
 * proxy's, so there the limit holds for the requests under way.
 */
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { ApiError, networkCheck, networkFrom, networkOf } from '../../schema/index.ts';

const RETRY_SECONDS = 5;
const REFUSAL = `HTTP/1.1 429 Too Many Requests\r\nretry-after: ${RETRY_SECONDS}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`;

/** @param max for one network; absent without a limit */
export function limitConnections(
  app: FastifyInstance,
  trustedProxies: readonly string[],
  max: number | undefined,
): void {
  if (max === undefined) return;
  const open = new Map<string, number>();
  /** @returns a function that ends the stay, or undefined if the network has too many */
  const enter = (address: string): (() => void) | undefined => {
    const network = networkOf(address);
    const count = open.get(network) ?? 0;
    if (count >= max) return undefined;
    open.set(network, count + 1);
    return () => {
      const left = open.get(network)! - 1;
      if (left) open.set(network, left);
      else open.delete(network);
    };
  };
  const networks = trustedProxies.map((proxy) => networkFrom(proxy)!);
  const isProxy = networks.length ? networkCheck(networks) : () => false;
  const proxied = new WeakSet<Socket>();
  app.server.on('connection', (socket) => {
    const address = socket.remoteAddress;
    if (!address || isProxy(address)) return void proxied.add(socket);
    const leave = enter(address);
    if (leave) socket.once('close', leave);
    else socket.end(REFUSAL, () => socket.destroy());
  });
  app.addHook('onRequest', (request, reply, done) => {
    if (!proxied.has(request.socket)) return done();
    const leave = enter(request.ip);
    if (leave) reply.raw.once('close', leave);
    done(leave ? undefined : refusal(max));
  });
}

const refusal = (max: number) =>
  new ApiError('rate_limited', `Your network has ${max} requests under way. Wait until one ends.`, {
    retryAfter: RETRY_SECONDS,
  });
