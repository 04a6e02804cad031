/**
 * Serves the requests of a connection one after the other. A client may send further requests before it has the answer
 * (pipelining, RFC 9112, section 9.3.2). Node would begin them all at once, and one read of a socket brings hundreds.
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** The most requests that wait on a connection. Above it, the listener closes the connection. */
const WAITING_MAX = 16;

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
  server.on('request', (request, response) => {
    const { socket } = request;
    // Node parses the rest of a read also after the close of its connection.
    if (socket.destroyed) return;
    const queue = queues.get(socket);
    if (!queue) {
      queues.set(socket, []);
      begin(request, response);
    } else if (queue.length < WAITING_MAX) queue.push([request, response]);
    else socket.destroy();
  });
}
