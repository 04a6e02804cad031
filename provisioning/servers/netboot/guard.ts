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

/** The bytes of a report, which has a line for each disk. */
const BODY_BYTES_MAX = 16_384;
/** The time without a byte after which a connection closes. */
const SILENT_MS = 60_000;

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
    // A client that reads nothing leaves its place to another one.
    server.timeout = SILENT_MS;
    server.on('connection', (socket: Socket) => this.#connected(socket));
    // Node would answer these requests by itself, one after the other.
    server.on('checkExpectation', ({ socket }) => socket.destroy());
    server.on('checkContinue', (request, response) => {
      response.writeContinue();
      server.emit('request', request, response);
    });
  }

  /** Whether a request may have an answer. Otherwise its connection closes. */
  admits(request: IncomingMessage): boolean {
    const { socket } = request;
    const caller = this.#callers.get(socket.remoteAddress ?? '');
    const isFirst = !this.#served.has(socket);
    this.#served.add(socket);
    const isBusy = caller?.second === secondNow() && caller.questions >= QUESTIONS_MAX;
    if (isFirst && caller && !isBusy && hasShortBody(request)) return true;
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

/** Only reports have a body, and tell its length. */
const hasShortBody = ({ method, headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] === undefined &&
  Number(headers['content-length'] ?? 0) <= (method === 'POST' ? BODY_BYTES_MAX : 0);

const secondNow = (): number => Math.floor(performance.now() / 1_000);
