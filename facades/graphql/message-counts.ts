/**
 * Bounds the messages and bytes that a caller sends by its sockets. The library parses each message, and answers a ping with its
 * content. A refused message never reaches it.
 */
import type { IncomingMessage } from 'node:http';
import type { WebSocket } from 'ws';

const KIB = 1024;
/** The most that a caller may send in a second. A message counts one, and each KiB another. */
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

  /**
   * Ends the socket above the limit. Call it before the library listens to the socket. The bytes count as they come, because
   * frames without a message cost time, too.
   */
  watch(socket: WebSocket, { socket: connection }: IncomingMessage): void {
    connection.prependListener('data', ({ length }: Buffer) => this.#count(socket, length / KIB));
    const on = socket.on.bind(socket) as (event: string, listener: (...given: unknown[]) => void) => WebSocket;
    socket.on = ((event: string, listener: (...given: unknown[]) => void) =>
      on(event, event === 'message' ? (...given) => this.#count(socket, 1) && listener(...given) : listener)) as never;
  }

  /** @returns whether the caller is within its limit */
  #count(socket: WebSocket, more: number): boolean {
    const second = Math.floor(performance.now() / 1_000);
    if (second !== this.#second) this.#counts.clear();
    this.#second = second;
    const caller = this.#callers.get(socket);
    const key = caller ?? socket;
    const count = (this.#counts.get(key) ?? 0) + more;
    this.#counts.set(key, count);
    if (count <= (caller === undefined ? STRANGERS_COUNT_MAX : COUNT_MAX)) return true;
    socket.terminate();
    return false;
  }
}
