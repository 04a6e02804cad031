/**
 * Serves the requests of a connection one after the other. A client may send further requests before it has the answer
 * (pipelining, RFC 9112, section 9.3.2). Node would begin them all at once, and one read of a socket brings hundreds.
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** The most requests that wait on a connection. Above it, the listener closes the connection. */
const WAITING_MAX = 16;
/** Tells Node's parser that the rest of a read is no HTTP. */
const REST_IS_NO_HTTP = 2;
/** Node has no public way to stop its parser. Without these members, it parses the rest for nothing. */
type ParsedSocket = Socket & { parser?: { onIncoming?: ((...given: unknown[]) => number) | null } | null };

/** Puts the handler of the server's requests behind a queue for each connection. */
export function serveInOrder(server: Server): void {
  const handlers = server.listeners('request') as RequestListener[];
  server.removeAllListeners('request');
  /** The requests that wait, of each connection with a request under way. */
  const queues = new WeakMap<Socket, [IncomingMessage, ServerResponse][]>();
  const begin = (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request;
    // The next request waits for the next turn of the event loop, so that other connections get theirs.
    response.once('close', () => setImmediate(next, socket));
    for (const handle of handlers) handle.call(server, request, response);
  };
  const next = (socket: Socket) => {
    const waiting = socket.destroyed ? undefined : queues.get(socket)!.shift();
    if (waiting) begin(...waiting);
    else queues.delete(socket);
  };
  server.on('connection', (socket: ParsedSocket) => {
    const { parser } = socket;
    const onIncoming = parser?.onIncoming;
    if (onIncoming) parser.onIncoming = (...given) => (socket.destroyed ? REST_IS_NO_HTTP : onIncoming(...given));
  });
  server.on('request', (request, response) => {
    const { socket } = request;
    const queue = queues.get(socket);
    if (!queue) {
      queues.set(socket, []);
      begin(request, response);
    } else if (queue.length < WAITING_MAX) queue.push([request, response]);
    else socket.destroy();
  });
}
