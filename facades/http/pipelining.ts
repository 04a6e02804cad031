/**
 * Serves the requests of a connection one after the other. A client may send further requests before it has the answer
 * (pipelining, RFC 9112, section 9.3.2). Node would begin them all at once, and one read of a socket brings hundreds.
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { boundBody, CHUNK_BYTES } from './request-bodies.ts';

/** The most requests that wait on a connection. Above it, the listener closes the connection. */
const WAITING_MAX = 16;
/**
 * The most bytes of their heads and bodies together, with the memory that each chunk takes. The body of the last one does not
 * count. Node reads up to 64 KB of it, and no more until its turn.
 */
const WAITING_BYTES_MAX = 64 * 1024;
/** The memory of each name and value of a header, besides its text. A name that is new takes most. */
const TEXT_BYTES = 96;
/** The memory of a request and its response, besides. */
const REQUEST_BYTES = 2_048;
/** Tells Node's parser that the rest of a read is no HTTP. */
const REST_IS_NO_HTTP = 2;
/** Node has no public way to stop its parser. Without these members, it parses the rest for nothing. */
type ParsedSocket = Socket & { parser?: { onIncoming?: ((...given: unknown[]) => number) | null } | null };

interface Waiting {
  request: IncomingMessage;
  response: ServerResponse;
  /** The bytes of the head, and the memory of the chunks. */
  bytes: number;
  /** The bytes of the body that have arrived. */
  bodyBytes: number;
}

/** Whether a request lacks the header Host, which HTTP/1.1 requires. The server leaves this check to its handler. */
export const lacksHost = ({ httpVersion, headers }: IncomingMessage): boolean =>
  httpVersion === '1.1' && headers.host === undefined;

const bytesOfHead = (request: IncomingMessage): number =>
  request.rawHeaders.reduce((sum, { length }) => sum + length + TEXT_BYTES, request.url!.length + REQUEST_BYTES);

/** Puts the handler of the server's requests behind a queue for each connection. */
export function serveInOrder(server: Server): void {
  const handlers = server.listeners('request') as RequestListener[];
  server.removeAllListeners('request');
  // Node would answer these requests by itself, at once, and without end.
  Object.assign(server, { requireHostHeader: false });
  const emit: RequestListener = (request, response) => void server.emit('request', request, response);
  const continued = new WeakSet<IncomingMessage>();
  server.on('checkExpectation', emit).on('checkContinue', (request, response) => {
    continued.add(request);
    emit(request, response);
  });
  /** The requests that wait, of each connection with a request under way. */
  const queues = new WeakMap<Socket, Waiting[]>();
  const begin = ({ request, response }: Pick<Waiting, 'request' | 'response'>) => {
    const { socket } = request;
    // The next request waits for the next turn of the event loop, so that other connections get theirs.
    response.once('close', () => setImmediate(next, socket));
    if (continued.has(request)) response.writeContinue();
    for (const handle of handlers) handle.call(server, request, response);
  };
  const next = (socket: Socket) => {
    // A connection whose last answer has ended closes soon.
    const waiting = socket.writableEnded || socket.destroyed ? undefined : queues.get(socket)!.shift();
    if (waiting) begin(waiting);
    else queues.delete(socket);
  };
  server.on('connection', (socket: ParsedSocket) => {
    const { parser } = socket;
    const onIncoming = parser?.onIncoming;
    if (!onIncoming) return;
    parser.onIncoming = (...given) =>
      socket.destroyed || socket.writableEnded ? REST_IS_NO_HTTP : onIncoming(...given);
  });
  server.on('request', (request, response) => {
    const { socket } = request;
    // The client has reset the connection already. No answer reaches it, and no limit could count it.
    if (!socket.remoteAddress) return void socket.destroy();
    boundBody(request, response);
    const queue = queues.get(socket);
    if (!queue) {
      queues.set(socket, []);
      return begin({ request, response });
    }
    const waiting = { request, response, bytes: bytesOfHead(request), bodyBytes: 0 };
    queue.push(waiting);
    const bound = () => {
      const bytes = queue.reduce((sum, one) => sum + one.bytes + (one === queue.at(-1) ? 0 : one.bodyBytes), 0);
      if (queue.length > WAITING_MAX || bytes > WAITING_BYTES_MAX) socket.destroy();
    };
    const { push } = request;
    request.push = (...given) => {
      waiting.bytes += CHUNK_BYTES;
      waiting.bodyBytes += given[0]?.length ?? 0;
      bound();
      // Node reads no more of a body that waits. The rest comes when its handler reads.
      return push.apply(request, given) && !queue.includes(waiting);
    };
    bound();
  });
}
