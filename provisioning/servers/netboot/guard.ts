/**
 * Bounds what the callers of the listener take. Anyone in the network of installations reaches it, without a credential, and it
 * runs in the process of the API. A connection has one request, so nothing waits behind an answer that its client does not read.
 */
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';

/** The most connections, of one address and of all. */
const [CONNECTIONS_OF_ADDRESS_MAX, CONNECTIONS_MAX] = [16, 256];
/** The most requests of an address in a second that ask the database. A machine needs a few for an installation. */
const QUESTIONS_MAX = 100;

interface Caller {
  connections: number;
  /** The requests of the present second that asked the database. */
  questions: number;
  second: number;
}

export class Guard {
  readonly #callers = new Map<string, Caller>();
  readonly #served = new WeakSet<Socket>();

  constructor(server: Server) {
    server.maxConnections = CONNECTIONS_MAX;
    server.on('connection', (socket: Socket) => this.#connected(socket));
  }

  /** Whether a request may have an answer. Otherwise its connection closes. */
  admits({ socket }: IncomingMessage): boolean {
    const caller = this.#callers.get(socket.remoteAddress ?? '');
    const isFirst = !this.#served.has(socket);
    this.#served.add(socket);
    if (isFirst && caller && !(caller.second === secondNow() && caller.questions >= QUESTIONS_MAX)) return true;
    socket.destroy();
    return false;
  }

  /** Counts a request that asks the database. */
  count({ socket }: IncomingMessage): void {
    const caller = this.#callers.get(socket.remoteAddress ?? '');
    if (!caller) return;
    if (caller.second !== secondNow()) Object.assign(caller, { second: secondNow(), questions: 0 });
    caller.questions++;
  }

  #connected(socket: Socket): void {
    const address = socket.remoteAddress ?? '';
    const caller = this.#callers.get(address) ?? { connections: 0, questions: 0, second: 0 };
    if (caller.connections >= CONNECTIONS_OF_ADDRESS_MAX) return void socket.destroy();
    this.#callers.set(address, caller);
    caller.connections++;
    socket.once('close', () => {
      caller.connections--;
      // The count of questions outlives the connection for its second.
      setTimeout(() => {
        if (!caller.connections && this.#callers.get(address) === caller) this.#callers.delete(address);
      }, 1_000).unref();
    });
  }
}

const secondNow = (): number => Math.floor(performance.now() / 1_000);
