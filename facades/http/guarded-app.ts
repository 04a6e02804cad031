/** The part of a listener that guards its process: strangers send requests, and take more than a listener may give. */
import Fastify, { type FastifyHttpOptions, type FastifyInstance, type onRequestHookHandler } from 'fastify';
import type { Server } from 'node:http';
import { ArrivingBytes } from './arriving-bytes.ts';
import { type ConnectionOptions, limitConnections } from './connections.ts';
import { serveInOrder } from './pipelining.ts';
import { isUnfinished } from './request-bodies.ts';
import { COUNTED_MIN, UnreadBytes } from './unread-bytes.ts';

/** The time for a request to arrive. Its response may take longer, as in long polling. */
const REQUEST_TIMEOUT_MS = 15_000;
/** The interval in which Node checks for slow requests. Its default of 30 seconds would triple their time. */
const CHECKING_MS = 1_000;

export interface GuardedOptions extends Omit<FastifyHttpOptions<Server>, 'http' | 'logger' | 'requestTimeout'> {
  /** The most bytes of headers that Node reads. */
  maxHeaderSize: number;
  /** Shutdown grace period for requests in flight. */
  shutdownGraceMs: number;
  /** Sees each request before the guards do. */
  onRequest: onRequestHookHandler;
  /** Absent without a limit. */
  connections?: ConnectionOptions | undefined;
}

/**
 * Returns an app that serves the requests of a connection in order, and limits connections. It bounds the bytes that arrive,
 * and those that wait for readers. A route that writes to a response by itself tells `unread` of it.
 */
export function guardedApp(options: GuardedOptions): { app: FastifyInstance; unread: UnreadBytes } {
  const { maxHeaderSize, shutdownGraceMs, onRequest, connections, ...rest } = options;
  const app = Fastify({
    ...rest,
    logger: false,
    requestTimeout: REQUEST_TIMEOUT_MS,
    return503OnClosing: false,
    http: { maxHeaderSize, headersTimeout: REQUEST_TIMEOUT_MS, connectionsCheckingInterval: CHECKING_MS },
  });
  serveInOrder(app.server);
  app.addHook('onRequest', onRequest);
  if (connections) limitConnections(app, connections);
  const arriving = new ArrivingBytes();
  app.addHook('onRequest', ({ raw, ip }, reply, done) => {
    arriving.watch(raw, reply.raw, ip);
    done();
  });
  // Its work begins now. A connection that closed later would lose the answer.
  app.addHook('preHandler', ({ raw, ip }, _, done) => {
    arriving.forget(raw, ip);
    done();
  });
  // A kept-alive connection would delay the shutdown, so responses during it close theirs.
  let closing = false;
  app.addHook('preClose', async () => {
    closing = true;
    const deadline = setTimeout(() => app.server.closeAllConnections(), shutdownGraceMs);
    app.server.once('close', () => clearTimeout(deadline));
  });
  const unread = new UnreadBytes();
  app.addHook('onSend', ({ raw }, reply, payload, done) => {
    // Only after this hook do the bytes wait.
    const { length = 0 } = (payload ?? {}) as { length?: number };
    if (length >= COUNTED_MIN) setImmediate(unread.note, reply.raw);
    if (closing || isUnfinished(raw)) reply.header('connection', 'close');
    done();
  });
  return { app, unread };
}
