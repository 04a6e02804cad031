/**
 * Limits how many connections a network may have to the public listener. Through a trusted proxy the connections are the
 * proxy's, so there the limit holds for the requests under way. All circuits of an onion service together have a limit, too,
 * because a stranger can open circuits without end.
 */
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { ApiError, isCircuit, networkOf } from '../../schema/index.ts';
import { rawResponse } from './client-errors.ts';
import type { ErrorResponder } from './errors.ts';
import type { proxyCheck } from './proxies.ts';

const RETRY_SECONDS = 5;

/** The most connections. */
export interface ConnectionLimits {
  /** Of one network. */
  perNetwork: number;
  /** Of all circuits of an onion service together. */
  perOnion: number;
}

export interface ConnectionOptions {
  isProxy: ReturnType<typeof proxyCheck>;
  limits: ConnectionLimits;
  errorResponse: ErrorResponder;
  newRequestId: () => string;
}

export function limitConnections(
  app: FastifyInstance,
  { isProxy, limits, errorResponse, newRequestId }: ConnectionOptions,
): void {
  const open = new Map<string, number>();
  const refusalOf = (holder: string, max: number) => {
    const detail = `${holder} ${max} connections or requests under way. Wait until one ends.`;
    return { max, refusal: new ApiError('rate_limited', detail, { retryAfter: RETRY_SECONDS }) };
  };
  const ofNetwork = refusalOf('Your network has', limits.perNetwork);
  const ofOnion = refusalOf('All callers of the onion service together have', limits.perOnion);
  /** @returns a function that ends the stay, or the refusal if the network or the onion service has too many */
  const enter = (address: string): (() => void) | ApiError => {
    const own = { group: networkOf(address), ...ofNetwork };
    const groups = isCircuit(address) ? [own, { group: 'circuits', ...ofOnion }] : [own];
    const full = groups.find(({ group, max }) => (open.get(group) ?? 0) >= max);
    if (full) return full.refusal;
    for (const { group } of groups) open.set(group, (open.get(group) ?? 0) + 1);
    return () => {
      for (const { group } of groups) {
        const left = open.get(group)! - 1;
        if (left) open.set(group, left);
        else open.delete(group);
      }
    };
  };
  const rawRefusal = (refusal: ApiError) => {
    const requestId = newRequestId();
    return rawResponse(errorResponse(refusal, requestId), requestId);
  };
  const proxied = new WeakSet<Socket>();
  app.server.on('connection', (socket) => {
    const address = socket.remoteAddress;
    if (!address || isProxy(address)) return void proxied.add(socket);
    const entered = enter(address);
    if (typeof entered === 'function') socket.once('close', entered);
    else socket.end(rawRefusal(entered), () => socket.destroy());
  });
  app.addHook('onRequest', (request, reply, done) => {
    if (!proxied.has(request.socket)) return done();
    const entered = enter(request.ip);
    if (typeof entered !== 'function') return done(entered);
    reply.raw.once('close', entered);
    done();
  });
}
