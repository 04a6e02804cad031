/**
 * Limits how many connections a network may have to the public listener. Through a trusted proxy the connections are the
 * proxy's, so there the limit holds for the requests under way.
 */
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { ApiError, networkCheck, networkOf } from '../../schema/index.ts';
import { rawResponse } from './client-errors.ts';
import type { ErrorResponder } from './errors.ts';

const RETRY_SECONDS = 5;

export interface ConnectionOptions {
  trustedProxies: readonly string[];
  /** For one network. */
  max: number;
  errorResponse: ErrorResponder;
  newRequestId: () => string;
}

export function limitConnections(
  app: FastifyInstance,
  { trustedProxies, max, errorResponse, newRequestId }: ConnectionOptions,
): void {
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
  const isProxy = networkCheck(trustedProxies);
  const detail = `Your network has ${max} connections or requests under way. Wait until one ends.`;
  const refusal = new ApiError('rate_limited', detail, { retryAfter: RETRY_SECONDS });
  const rawRefusal = () => {
    const requestId = newRequestId();
    return rawResponse(errorResponse(refusal, requestId), requestId);
  };
  const proxied = new WeakSet<Socket>();
  app.server.on('connection', (socket) => {
    const address = socket.remoteAddress;
    if (!address || isProxy(address)) return void proxied.add(socket);
    const leave = enter(address);
    if (leave) socket.once('close', leave);
    else socket.end(rawRefusal(), () => socket.destroy());
  });
  app.addHook('onRequest', (request, reply, done) => {
    if (!proxied.has(request.socket)) return done();
    const leave = enter(request.ip);
    if (leave) reply.raw.once('close', leave);
    done(leave ? undefined : refusal);
  });
}
