/**
 * Bounds the work that the bodies of requests cost. Node parses the rest of a body after its answer. It calls back for each
 * chunk, so tiny chunks cost far more than their bytes.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** The memory that a chunk takes beside its bytes. */
export const CHUNK_BYTES = 256;
/** The most chunks of a body. Above it, the listener closes the connection. */
const CHUNKS_MAX = 1024;
/** The most bytes that the listener still takes from the client of a refused body. They cost no parsing. */
const LINGER_BYTES = 128 * 1024;
const LINGER_MS = 1_000;
/** The name of the function of Node that gets each chunk from the parser. */
const CHUNK_TAKER = 'parserOnBody';
/** Node has no public way to stop its parser. Without these members, the parser calls back for nothing. */
type ParsedSocket = Socket & { parser?: Record<string, unknown> | null };

/** The bytes of the body by its head. Infinity if the head does not tell. */
export function declaredBytes({ headers }: IncomingMessage): number {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : Infinity;
}

/** Whether a part of the body has not arrived. */
export const isUnfinished = (request: IncomingMessage): boolean => !request.complete && declaredBytes(request) > 0;

/** Closes the connection if the body has too many chunks, or if the answer ends before the body. */
export function boundBody(request: IncomingMessage, response: ServerResponse): void {
  if (!declaredBytes(request)) return;
  const { socket } = request;
  let chunks = 0;
  request.push = function push(...given) {
    if (++chunks > CHUNKS_MAX) socket.destroy();
    if (!socket.destroyed && !socket.writableEnded) return Object.getPrototypeOf(this).push.apply(this, given);
    // A handler must not take the part for the whole, so even the end of the body goes nowhere.
    silence(socket);
    return true;
  };
  // Node's own listener comes after this one. It would read the rest of the body.
  response.prependListener('finish', () => {
    if (request.complete) return;
    silence(socket);
    closeGently(socket);
  });
}

/** Makes the parser pass over the chunks of a body until the connection closes. Most of their cost is the call for each. */
function silence(socket: ParsedSocket): void {
  const { parser } = socket;
  // Node takes the parser from the connection when it closes.
  if (!parser) return;
  const key = Object.keys(parser).find((one) => (parser[one] as { name?: unknown } | null)?.name === CHUNK_TAKER);
  if (!key) return;
  const take = parser[key];
  parser[key] = null;
  // Node keeps it for another connection, which needs the calls.
  socket.prependOnceListener('close', () => {
    parser[key] = take;
  });
}

/** Closes a connection whose client still sends. If it closed at once, the client would lose the answer. */
function closeGently(socket: Socket): void {
  // Node calls it after an answer with `connection: close`, and would close at once.
  socket.destroySoon = () => {};
  // The parser reads by this event.
  socket.removeAllListeners('data');
  let left = LINGER_BYTES;
  socket.on('data', ({ length }) => {
    left -= length;
    if (left <= 0) socket.pause();
  });
  socket.end();
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(timer));
}
