/**
 * The listener of an onion service. With `HiddenServiceExportCircuitID haproxy`, Tor begins each connection with a line of the
 * PROXY protocol, version 1. It names the circuit of the caller, whose address becomes the address of the connection. So limits
 * hold for each circuit, although Tor connects from this machine.
 */
import { chmodSync, lstatSync, rmSync } from 'node:fs';
import { connect, createServer, isIPv6, type ListenOptions, type Server, type Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { isCircuit } from '../../schema/index.ts';

/** With the line break, as the protocol defines it. */
const LINE_MAX = 107;
const LINE_MS = 3_000;
/** Shutdown grace period for requests in flight. */
const SHUTDOWN_GRACE_MS = 10_000;

const NO_LINE =
  'ONION_LISTENER closes connections that do not begin with the line of a circuit. If Tor opens them, its onion service lacks ' +
  'the line: HiddenServiceExportCircuitID haproxy';

/**
 * Returns a server that hands its connections to the app. It closes with the app.
 * @param onWarning called once, at the first connection that begins with anything but the line
 */
export function circuitServer(app: FastifyInstance, onWarning: (warning: string) => void): Server {
  let isWarned = false;
  const warn = () => {
    if (!isWarned) onWarning(NO_LINE);
    isWarned = true;
  };
  // These are the options of Node's HTTP server.
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
    readLine(socket, (line) => {
      const address = circuitIn(line);
      if (!address) {
        warn();
        return void socket.destroy();
      }
      Object.defineProperty(socket, 'remoteAddress', { value: address });
      app.server.emit('connection', socket);
    }),
  );
  const closed = Promise.withResolvers<void>();
  app.addHook('preClose', async () => void server.close(() => closed.resolve()));
  // The app waits for its own connections only.
  app.addHook('onClose', async () => {
    const deadline = setTimeout(() => app.server.closeAllConnections(), SHUTDOWN_GRACE_MS);
    await closed.promise;
    clearTimeout(deadline);
  });
  return server;
}

/** Listens at an address or a socket. Users of the socket's group may connect to it. */
export async function listenAt(server: Server, at: ListenOptions): Promise<void> {
  if (at.path && lstatSync(at.path, { throwIfNoEntry: false })?.isSocket() && (await isDead(at.path))) rmSync(at.path);
  await new Promise<void>((done, fail) => server.once('error', fail).listen(at, done)).catch(
    (error: NodeJS.ErrnoException) => {
      if (!at.path || (error.code !== 'EACCES' && error.code !== 'ENOENT')) throw error;
      throw new Error(
        `ONION_LISTENER cannot make the socket ${at.path} (${error.code}). Make its folder, and let the user of the service write ` +
          'in it. RuntimeDirectory= of systemd does both for a folder in /run.',
      );
    },
  );
  if (at.path) chmodSync(at.path, 0o660);
}

/** Whether a process that was killed has left the socket. */
const isDead = (path: string) =>
  new Promise<boolean>((done) => {
    const socket = connect({ path }, () => done(false));
    socket.on('error', ({ code }: NodeJS.ErrnoException) => done(code === 'ECONNREFUSED'));
    socket.on('connect', () => socket.destroy());
  });

/** Reads the first line, or too many bytes without one, and leaves the bytes after it in the socket. */
function readLine(socket: Socket, onLine: (line: string) => void): void {
  let head = Buffer.alloc(0);
  const close = () => void socket.destroy();
  const read = () => {
    for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) head = Buffer.concat([head, chunk]);
    const end = head.subarray(0, LINE_MAX).indexOf('\r\n');
    if (end < 0 && head.length < LINE_MAX) return;
    clearTimeout(timer);
    socket.off('readable', read).off('end', close).off('error', close);
    if (end < 0) return onLine('');
    if (head.length > end + 2) socket.unshift(head.subarray(end + 2));
    onLine(head.toString('latin1', 0, end));
  };
  const timer = setTimeout(close, LINE_MS);
  socket.once('close', () => clearTimeout(timer));
  socket.on('readable', read).on('end', close).on('error', close);
}

/** Returns the address of the circuit that a line names, or undefined for any other line. */
function circuitIn(line: string): string | undefined {
  const [, source = '', destination = ''] = /^PROXY TCP6 (\S+) (\S+) \d{1,5} \d{1,5}$/.exec(line) ?? [];
  return isCircuit(source) && isIPv6(destination) ? source : undefined;
}
