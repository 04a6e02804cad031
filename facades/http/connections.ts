/**
 * Limits how many connections a caller may have to a listener. Through a trusted proxy the connections are the proxy's, so
 * there the limit holds for the requests under way. A site has many networks, and a stranger can open circuits of an onion
 * service without end. So these have limits together, and so have all callers. At a limit, the longest idle connection gives
 * way to a new one. A signal tells the work for a caller that the caller has gone.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { ApiError, isCircuit, networkOf, siteOf } from '../../schema/index.ts';
import type { proxyCheck } from './proxies.ts';

const RETRY_SECONDS = 5;
/** The networks of a site that can use up their limits at once. */
const NETWORKS_OF_SITE = 10;

/** The most connections. */
export interface ConnectionLimits {
  /** Of one network. */
  perNetwork: number;
  /** Of all circuits of an onion service together. */
  perOnion: number;
  /** Of all callers together. */
  total: number;
}

/** A limit of connections or requests under way. */
interface StayLimit {
  group: string;
  max: number;
  refusal: ApiError;
  /**
   * Lets others give way, although no connection is idle: the oldest one whose request has not arrived. At `crowd`, the oldest one
   * of the caller with the most comes next. Default: none.
   */
  givesWay?: 'arriving' | 'crowd';
}

/** Returns the limits for an address. The group of the first is the caller. */
type LimitsOf = (address: string) => readonly [StayLimit, ...StayLimit[]];

export interface ConnectionOptions {
  isProxy: ReturnType<typeof proxyCheck>;
  limitsOf: LimitsOf;
  /** Returns the text of a response that refuses a connection. */
  refusalText: (refusal: ApiError) => string;
}

/** A connection, or a request through a proxy. */
interface Stay {
  /** Absent until it has begun. */
  caller?: string;
  requests: number;
  /** When the last request began or ended or, before any, the connection opened. In milliseconds of the process. */
  since: number;
  /** Whether the connection has had a request. */
  served: boolean;
  /** The last request of the connection. */
  request?: IncomingMessage;
  close: () => void;
  /** Ends the stay. Absent until it has begun. */
  leave?: () => void;
}

/** Time for the first request of a connection, which is still arriving. */
const FIRST_REQUEST_MS = 1_000;

const isIdle = ({ requests, since, served }: Stay): boolean =>
  !requests && (served || performance.now() - since > FIRST_REQUEST_MS);

/** Whether the body of its request has not come within the time for a request. */
const isArriving = ({ request, since }: Stay): boolean =>
  request?.complete === false && performance.now() - since > FIRST_REQUEST_MS;

/** The limits of each network, of each site, of all circuits and of all callers. */
export function networkLimits(limits: ConnectionLimits): LimitsOf {
  const refusalOf = (holder: string, max: number) => {
    const detail = `${holder} ${max} connections or requests under way. Wait until one ends.`;
    return { max, refusal: new ApiError('rate_limited', detail, { retryAfter: RETRY_SECONDS }) };
  };
  const ofNetwork = refusalOf('Your network has', limits.perNetwork);
  const ofSite = refusalOf('Your IPv6 /48 has', NETWORKS_OF_SITE * limits.perNetwork);
  const ofMany = (group: string, holder: string, max: number) => ({
    ...{ group, givesWay: 'arriving' as const },
    ...refusalOf(holder, max),
  });
  const ofOnion = ofMany('circuits', 'All callers of the onion service together have', limits.perOnion);
  const ofAll = ofMany('all', 'All callers together have', limits.total);
  return (address) => {
    const [network, site] = [networkOf(address), siteOf(address)];
    const own = { group: network, ...ofNetwork };
    if (isCircuit(address)) return [own, ofOnion, ofAll];
    return site === network ? [own, ofAll] : [own, { group: site, ...ofSite }, ofAll];
  };
}

/** The stays of each group, within their limits. */
class Stays {
  readonly #open = new Map<string, Set<Stay>>();
  readonly #limitsOf: LimitsOf;

  constructor(limitsOf: LimitsOf) {
    this.#limitsOf = limitsOf;
  }

  /** Begins a stay. @returns a function that ends it, or the refusal if a limit is full of requests under way */
  enter(address: string, stay: Stay): (() => void) | ApiError {
    const limits = this.#limitsOf(address);
    stay.caller = limits[0].group;
    for (const { group, max, refusal, givesWay } of limits) {
      const stays = this.#open.get(group);
      if (!stays || stays.size < max) continue;
      const oldest = (which: (one: Stay) => boolean) =>
        [...stays].filter(which).reduce<Stay | undefined>(longer, undefined);
      const leaver =
        oldest(isIdle) ??
        (givesWay && oldest(isArriving)) ??
        (givesWay === 'crowd' ? oldestOfCrowd(stays, stay.caller) : undefined);
      if (!leaver) return refusal;
      leaver.leave!();
      leaver.close();
    }
    for (const { group } of limits) {
      const stays = this.#open.get(group) ?? new Set();
      this.#open.set(group, stays.add(stay));
    }
    stay.leave = () => {
      for (const { group } of limits) {
        const stays = this.#open.get(group);
        stays?.delete(stay);
        if (!stays?.size) this.#open.delete(group);
      }
    };
    return stay.leave;
  }
}

const longer = (a: Stay | undefined, b: Stay): Stay => (a && a.since <= b.since ? a : b);

/** Returns the oldest stay of the caller that has the most. Undefined: the newcomer would have as many. */
function oldestOfCrowd(stays: Set<Stay>, newcomer: string): Stay | undefined {
  const callers = Map.groupBy(stays, ({ caller }) => caller);
  const crowd = [...callers.values()].reduce((most, one) => (one.length > most.length ? one : most));
  return crowd.length > 1 + (callers.get(newcomer)?.length ?? 0) ? crowd[0] : undefined;
}

export function limitConnections(app: FastifyInstance, { isProxy, limitsOf, refusalText }: ConnectionOptions): void {
  const stays = new Stays(limitsOf);
  const connections = new WeakMap<Socket, Stay>();
  const newStay = (socket: Socket) => ({
    ...{ requests: 0, since: performance.now(), served: false },
    close: () => void socket.destroy(),
  });
  app.server.on('connection', (socket) => {
    const address = socket.remoteAddress;
    if (!address || isProxy(address)) return;
    const stay: Stay = newStay(socket);
    const entered = stays.enter(address, stay);
    if (typeof entered !== 'function') return void socket.end(refusalText(entered), () => socket.destroy());
    connections.set(socket, stay);
    socket.once('close', entered);
  });
  app.server.on('request', (request, response) => {
    const stay = connections.get(request.socket);
    if (!stay) return;
    stay.request = request;
    stay.requests++;
    stay.served = true;
    stay.since = performance.now();
    response.once('close', () => {
      stay.requests--;
      stay.since = performance.now();
    });
  });
  app.addHook('onRequest', (request, reply, done) => {
    if (connections.has(request.socket)) return done();
    const entered = stays.enter(request.ip, { ...newStay(request.socket), request: request.raw, requests: 1 });
    if (typeof entered !== 'function') return done(entered);
    reply.raw.once('close', entered);
    done();
  });
}

/** Aborts when the caller goes before the whole answer has left. It has aborted if the caller has already gone. */
export function disconnectOf(response: ServerResponse): AbortSignal {
  const disconnect = new AbortController();
  const end = () => !response.writableFinished && disconnect.abort();
  if (response.destroyed) end();
  else response.once('close', end);
  return disconnect.signal;
}
