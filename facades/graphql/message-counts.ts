/**
 * Bounds the messages that a caller sends by its sockets. The library parses each message, and answers a ping with its content.
 * So the bytes count, too, and a refused message never reaches the library.
 */
import { WebSocket } from 'ws';

const KIB = 1024;
/** The most that a caller may send in a second. A message counts one, and one more for each KiB. */
const COUNT_MAX = 1_000;
/** The same for a socket that has not shown its credential. The message that shows it is a small one. */
const STRANGERS_COUNT_MAX = 5;

export class MessageCounts {
  /** The callers of the sockets that have shown a credential. The sockets of a caller count together. */
  readonly #callers = new WeakMap<WebSocket, unknown>();
  /** The counts of the present second, of callers and of strangers' sockets. */
  readonly #counts = new Map<unknown, number>();
  #second = 0;

  /** Whether the socket has shown its credential. */
  isAdmitted(socket: WebSocket): boolean {
    return this.#callers.has(socket);
  }

  /** Notes that the socket has shown its credential. @param caller the name under which it counts. Default: the socket alone */
  admit(socket: WebSocket, caller: unknown = socket): void {
    this.#callers.set(socket, caller);
  }

  /** Ends the socket at a message above the limit. Call it before the library listens to the socket. */
  watch(socket: WebSocket): void {
    const on = socket.on.bind(socket) as (event: string, listener: (...given: unknown[]) => void) => WebSocket;
    socket.on = ((event: string, listener: (...given: unknown[]) => void) =>
      on(
        event,
        event === 'message' ? (...given) => this.#takes(socket, given) && listener(...given) : listener,
      )) as never;
    on('ping', (content) => this.#takes(socket, [content]));
  }

  #takes(socket: WebSocket, [content]: unknown[]): boolean {
    if (socket.readyState === WebSocket.CLOSED) return false;
    const second = Math.floor(performance.now() / 1_000);
    if (second !== this.#second) this.#counts.clear();
    this.#second = second;
    const caller = this.#callers.get(socket);
    const key = caller ?? socket;
    const count = (this.#counts.get(key) ?? 0) + 1 + Math.floor((content as Buffer).length / KIB);
    this.#counts.set(key, count);
    if (count <= (caller === undefined ? STRANGERS_COUNT_MAX : COUNT_MAX)) return true;
    socket.terminate();
    return false;
  }
}
