/**
 * GraphQL over WebSocket. A socket keeps one credential for life, and closes when the credential ends. The code of the close
 * tells the client whether to come back.
 */
import type { IncomingMessage, Server } from 'node:http';
import { type GraphQLError, getOperationAST, OperationTypeNode } from 'graphql';
import type { ServerOptions, SubscribePayload } from 'graphql-ws';
import { type Extra, useServer } from 'graphql-ws/use/ws';
import { type WebSocket, WebSocketServer } from 'ws';
import { ApiError, type Context, type CredentialEnd, schema, type Viewer } from '../../schema/index.ts';
import type { Authenticate, OnCredentialEnd } from '../compile/run.ts';
import { type Log, shownError } from '../http/errors.ts';
import { type Mask, maskingWithoutHttp, readOperation } from './errors.ts';
import { isTooLarge, tooLargeAnswer } from './limits.ts';

/** The close code of graphql-ws for a refused connection. */
const FORBIDDEN = 4403;
/** The close code of WebSocket (RFC 6455) for a service that stops. Clients reconnect. */
const GOING_AWAY = 1001;
/** The close code "try again later" of WebSocket. Clients reconnect. */
const TRY_AGAIN = 1013;
/** The time for clients to answer the close of their sockets. */
const CLOSING_MS = 2_000;

/** Limits of messages. Each unfinished fragment waits in memory, also before a client has shown its credential. */
const MESSAGES = { maxPayload: 64 * 1024, maxFragments: 64, maxBufferedChunks: 256, closeTimeout: CLOSING_MS };
const SOCKETS_MAX = 1_000;
/** The most operations of a socket that wait for their turn. */
const OPERATIONS_WAITING_MAX = 100;
/** The most messages of a socket in a second, and of one that has not shown its credential. */
const [MESSAGES_MAX, STRANGERS_MESSAGES_MAX] = [1_000, 5];
/** The sockets that have shown a credential. */
const ADMITTED = new WeakSet<WebSocket>();
/** The most bytes that wait for the client of a socket before its next message. */
const UNREAD_BYTES_MAX = 4 * 1024 * 1024;

export interface SocketOptions {
  authenticate: Authenticate;
  contextOf(request: Pick<Context, 'viewer' | 'userAgent' | 'address' | 'signal'>): Context;
  onCredentialEnd: OnCredentialEnd;
  /** Counts an operation of a caller. @throws ApiError rate_limited */
  admit: (viewer: Viewer, address: string | null) => Promise<void>;
  /** Receives faults, without any input value. */
  onError: Log;
}

interface Connection extends Extra {
  viewer: Viewer;
  gone: AbortController;
  /** The number of operations that wait, and the turn of the last one. */
  waiting: number;
  turn: Promise<void>;
}
type Options = ServerOptions<Record<string, unknown>, Partial<Connection>>;

/** @returns a function that ends all sockets, also those of clients that do not answer */
export function acceptSockets(server: Server, path: string, options: SocketOptions, mask: Mask): () => void {
  // A WebSocketServer with the server would log its errors, such as a taken port. The start reports these.
  const sockets = new WebSocketServer({ noServer: true, path, ...MESSAGES });
  server.on('upgrade', (request, connection, head) => {
    if (sockets.clients.size >= SOCKETS_MAX) return connection.destroy();
    sockets.handleUpgrade(request, connection, head, (socket) => sockets.emit('connection', socket, request));
  });
  sockets.on('connection', boundMessages);
  useServer(socketOptions(options, maskingWithoutHttp(mask)), sockets);
  // The library logs each fault of a client. Any stranger could fill the log.
  sockets.on('connection', (socket: WebSocket) =>
    socket.removeAllListeners('error').on('error', () => socket.terminate()),
  );
  return () => {
    for (const socket of sockets.clients) socket.close(GOING_AWAY, 'The service stops.');
    const deadline = setTimeout(() => {
      for (const socket of sockets.clients) socket.terminate();
    }, CLOSING_MS);
    server.once('close', () => clearTimeout(deadline));
  };
}

/**
 * Bounds the messages of a socket, in both directions. Ends it if its client does not read, or sends too many. A message that
 * cannot be sent any more is no error: the library would log each.
 */
function boundMessages(socket: WebSocket): void {
  const send = socket.send.bind(socket) as (data: unknown, sent: () => void) => void;
  socket.send = (data: unknown, sent?: unknown) => {
    if (socket.bufferedAmount > UNREAD_BYTES_MAX) socket.terminate();
    send(data, () => (sent as (() => void) | undefined)?.());
  };
  let [messages, since] = [0, performance.now()];
  socket.on('message', () => {
    if (performance.now() - since >= 1_000) [messages, since] = [0, performance.now()];
    const most = ADMITTED.has(socket) ? MESSAGES_MAX : STRANGERS_MESSAGES_MAX;
    if (++messages > most) socket.terminate();
  });
}

export const addressOf = ({ socket }: IncomingMessage): string | null => socket.remoteAddress ?? null;

function socketOptions({ contextOf, ...options }: SocketOptions, mask: Mask): Options {
  /** A client takes an error in a message for the end of its subscription. After a close it subscribes again. */
  const shown = ({ socket }: Connection, errors: readonly GraphQLError[], isSubscription: boolean): GraphQLError[] => {
    const masked = errors.map(mask);
    if (isSubscription && masked.some(({ extensions }) => extensions.code === 'unavailable')) closeForNow(socket);
    return masked;
  };
  return {
    schema,
    onSubscribe: ({ extra }, _, payload) => begin(extra as Connection, payload, options.admit, mask),
    connectionInitWaitTimeout: 5_000,
    onConnect: ({ connectionParams, extra }) => connect(extra as Connection, connectionParams, options),
    context: ({ extra }) => {
      const { viewer, gone, request } = extra as Connection;
      const userAgent = request.headers['user-agent'] ?? null;
      return contextOf({ viewer, userAgent, address: addressOf(request), signal: gone.signal }) as never;
    },
    // Only a subscription has errors beside its results.
    onError: ({ extra }, _, __, errors) => shown(extra as Connection, errors, true),
    onNext: ({ extra }, _, __, { document, operationName }, result) => {
      if ('data' in result && isTooLarge(result.data)) return { errors: [mask(tooLargeAnswer())] };
      if (!result.errors) return undefined;
      const isSubscription = getOperationAST(document, operationName)?.operation === OperationTypeNode.SUBSCRIPTION;
      return { ...result, errors: shown(extra as Connection, result.errors, isSubscription) };
    },
  } as Options;
}

/** Begins an operation when it is its turn. Other callers come between two operations of a socket. */
async function begin(
  connection: Connection,
  payload: SubscribePayload,
  admit: SocketOptions['admit'],
  mask: Mask,
): Promise<ReturnType<typeof readOperation>> {
  try {
    if (connection.waiting >= OPERATIONS_WAITING_MAX)
      throw new ApiError('rate_limited', 'Too many operations of this socket wait.', { retryAfter: 1 });
    connection.waiting++;
    connection.turn = connection.turn.then(() => new Promise((resume) => setImmediate(resume)));
    await connection.turn.finally(() => connection.waiting--);
    await admit(connection.viewer, addressOf(connection.request));
    return readOperation(schema, payload);
  } catch (error) {
    return [mask(error)];
  }
}

/** Authenticates the client of a socket. @returns whether it may use the service */
async function connect(
  connection: Connection,
  parameters: Record<string, unknown> | undefined,
  { authenticate, onCredentialEnd, onError }: Pick<SocketOptions, 'authenticate' | 'onCredentialEnd' | 'onError'>,
): Promise<boolean> {
  const { request, socket } = connection;
  const given = parameters?.authorization ?? parameters?.Authorization ?? request.headers.authorization;
  const authorization = typeof given === 'string' ? given : undefined;
  const viewer = await authenticate(authorization, addressOf(request)).catch((error) => {
    if (shownError(error, onError).code === 'unavailable') closeForNow(socket);
    return null;
  });
  if (!viewer) return false;
  const gone = new AbortController();
  const credential = onCredentialEnd(viewer, (how: CredentialEnd) =>
    how === 'ended' ? socket.close(FORBIDDEN, 'The credential has ended') : closeForNow(socket),
  );
  socket.once('close', () => {
    credential.forget();
    gone.abort();
  });
  ADMITTED.add(socket);
  Object.assign(connection, { viewer, gone, waiting: 0, turn: Promise.resolve() });
  await credential.checked;
  return true;
}

const closeForNow = (socket: WebSocket): void => socket.close(TRY_AGAIN, 'The service is not available at the moment.');
