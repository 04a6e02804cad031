/**
 * GraphQL over WebSocket. A socket keeps one credential for life, and closes when the credential ends. The code of the close
 * tells the client whether to come back.
 */
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import {
  type ExecutionArgs,
  type ExecutionResult,
  execute,
  type GraphQLError,
  getOperationAST,
  OperationTypeNode,
} from 'graphql';
import type { ServerOptions, SubscribePayload } from 'graphql-ws';
import { type Extra, useServer } from 'graphql-ws/use/ws';
import { WebSocket, WebSocketServer } from 'ws';
import {
  ApiError,
  Ceiling,
  type Context,
  type CredentialEnd,
  FIRST_OWNER,
  schema,
  type Viewer,
} from '../../schema/index.ts';
import type { Authenticate, OnCredentialEnd } from '../compile/run.ts';
import { type Log, shownError } from '../http/errors.ts';
import { COUNTED_MIN, type UnreadBytes } from '../http/unread-bytes.ts';
import { type Mask, maskingWithoutHttp, readOperation } from './errors.ts';
import { isTooLarge, tooLargeAnswer } from './limits.ts';
import { MessageCounts } from './message-counts.ts';
import type { AdmitCalls, Operations } from './operations.ts';
import { sending, watchShort } from './watchers.ts';

/** The close code of graphql-ws for a refused connection. */
const FORBIDDEN = 4403;
/** The close code of WebSocket (RFC 6455) for a service that stops. Clients reconnect. */
const GOING_AWAY = 1001;
/** The close code "try again later" of WebSocket. Clients reconnect. */
const TRY_AGAIN = 1013;
/** The time for clients to answer the close of their sockets. */
const CLOSING_MS = 2_000;

/**
 * Limits of messages. Each unfinished fragment waits in memory, also before a client has shown its credential. A fragment of one
 * byte keeps all that the same read brought, 64 KiB.
 */
const MESSAGES = { maxPayload: 64 * 1024, maxFragments: 2, maxBufferedChunks: 256, closeTimeout: CLOSING_MS };
/** The limits of the sockets of a process, unless the options have others. */
export const SOCKETS = {
  /** The most sockets. At the limit, a new one takes the place of the oldest one that has not shown its credential. */
  max: 10_100,
  /** The sockets that accounts leave to the operator, and to those who have not shown their credentials. */
  reserved: 100,
};
/** More than the subscriptions of an account, each of which may have a socket. A named operator has as many. */
const SOCKETS_OF_ONE_MAX = 64;
/** The most operations of a socket that wait for their turn. */
const OPERATIONS_WAITING_MAX = 100;
/** An operation that has begun. */
interface Begun {
  socket: WebSocket;
  id: string;
  end(): void;
}
/** The operations that have begun, by their arguments. */
const BEGUN = new WeakMap<object, Begun>();
/** The most bytes that wait for the client of a socket before its next message. */
const UNREAD_BYTES_MAX = 4 * 1024 * 1024;

export interface SocketOptions {
  authenticate: Authenticate;
  contextOf(request: Pick<Context, 'viewer' | 'userAgent' | 'address' | 'signal'>): Context;
  onCredentialEnd: OnCredentialEnd;
  admit: AdmitCalls;
  /** Receives faults, without any input value. */
  onError: Log;
  /** Default: `SOCKETS`. */
  sockets?: typeof SOCKETS;
}
/** The options, with the parts that HTTP and WebSocket share. */
interface Options extends SocketOptions {
  operations: Operations;
  unread: UnreadBytes;
}

/** The parts that the sockets of a process share. */
interface Shared {
  places: Places;
  counts: MessageCounts;
}

interface Connection extends Extra {
  viewer: Viewer;
  gone: AbortController;
  /** The number of operations that wait, and the turn of the last one. */
  waiting: number;
  turn: Promise<void>;
}
type LibraryOptions = ServerOptions<Record<string, unknown>, Partial<Connection>>;

/** @returns a function that ends all sockets, also those of clients that do not answer */
export function acceptSockets(server: Server, path: string, options: Options, mask: Mask): () => void {
  // A WebSocketServer with the server would log its errors, such as a taken port. The start reports these.
  const sockets = new WebSocketServer({ noServer: true, path, ...MESSAGES });
  const { max, reserved } = options.sockets ?? SOCKETS;
  const places = new Places(max - reserved);
  const counts = new MessageCounts();
  server.on('upgrade', (request, connection, head) => {
    if (sockets.clients.size >= max && !closeOldestStranger(sockets, counts)) return connection.destroy();
    sockets.handleUpgrade(request, connection, head, (socket) => sockets.emit('connection', socket, request));
  });
  sockets.on('connection', (socket: WebSocket, request: IncomingMessage) => {
    boundUnread(socket, request.socket, options.unread);
    counts.watch(socket, request);
  });
  useServer(socketOptions({ ...options, places, counts }, maskingWithoutHttp(mask)), sockets);
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

/** Closes the oldest socket that has not shown its credential. @returns whether there was one */
function closeOldestStranger({ clients }: WebSocketServer, counts: MessageCounts): boolean {
  for (const socket of clients) {
    if (counts.isAdmitted(socket) || socket.readyState !== WebSocket.OPEN) continue;
    socket.terminate();
    return true;
  }
  return false;
}

/** The caller whose sockets count together. Those of the token in DATA_DIR count each for itself. */
const callerOf = ({ accountId, credentialId }: Viewer): string | undefined =>
  credentialId === FIRST_OWNER.credentialId ? undefined : (accountId ?? credentialId);

/** The places of sockets. The token in DATA_DIR needs none. */
class Places {
  readonly #all: Ceiling;
  readonly #ofOne = new Ceiling(SOCKETS_OF_ONE_MAX, 'too many sockets of one caller');

  constructor(max: number) {
    this.#all = new Ceiling(max, 'too many sockets');
  }

  /** Takes a place until the socket closes. @throws ApiError rate_limited */
  take(viewer: Viewer, socket: WebSocket): void {
    const caller = callerOf(viewer);
    if (!caller) return;
    socket.once('close', this.#ofOne.enter(caller));
    if (viewer.accountId) socket.once('close', this.#all.enter('accounts'));
  }
}

/**
 * Closes a socket whose client does not read. The client may come back, and its subscriptions begin with the present state.
 * @param unread bounds what waits for all clients together
 */
function boundUnread(socket: WebSocket, connection: Socket, unread: UnreadBytes): void {
  const send = socket.send.bind(socket) as (data: unknown, sent?: unknown) => void;
  socket.send = (data: unknown, sent?: unknown) => {
    if (socket.bufferedAmount > UNREAD_BYTES_MAX) socket.close(TRY_AGAIN, 'Your client reads too slowly.');
    // A message that cannot be sent any more is no error: the library would log each.
    send(data, () => (sent as (() => void) | undefined)?.());
    if (socket.bufferedAmount >= COUNTED_MIN) unread.note(connection);
  };
}

export const addressOf = ({ socket }: IncomingMessage): string | null => socket.remoteAddress ?? null;

function socketOptions({ contextOf, ...options }: Options & Shared, mask: Mask): LibraryOptions {
  /** A client takes an error in a message for the end of its subscription. After a close it subscribes again. */
  const shown = ({ socket }: Connection, errors: readonly GraphQLError[], isSubscription: boolean): GraphQLError[] => {
    const masked = errors.map(mask);
    if (isSubscription && masked.some(({ extensions }) => extensions.code === 'unavailable')) closeForNow(socket);
    return masked;
  };
  return {
    schema,
    onSubscribe: ({ extra }, id, payload) => begin(extra as Connection, id, payload, options, mask),
    execute: (args) => perform(args, execute, options.operations),
    subscribe: async (args) => {
      const answers = await perform(args, watchShort, options.operations);
      return Symbol.asyncIterator in answers
        ? sending(answers, { ...BEGUN.get(args)!, mask, lost: closeForNow })
        : answers;
    },
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
  } as LibraryOptions;
}

/** Runs an operation that has begun. Its refusal is an answer, and the socket stays open. */
async function perform<Result>(
  args: ExecutionArgs,
  run: (args: ExecutionArgs) => Result,
  operations: Operations,
): Promise<Awaited<Result> | ExecutionResult> {
  try {
    return await operations.run(args, run);
  } catch (error) {
    return { errors: [error as GraphQLError] };
  } finally {
    BEGUN.get(args)?.end();
  }
}

/** Begins an operation when it is its turn. Other callers come between two operations of a socket. */
async function begin(
  connection: Connection,
  id: string,
  payload: SubscribePayload,
  { admit, operations }: Pick<Options, 'admit' | 'operations'>,
  mask: Mask,
): Promise<ReturnType<typeof readOperation>> {
  const { viewer, gone, request } = connection;
  try {
    if (connection.waiting >= OPERATIONS_WAITING_MAX)
      throw new ApiError('rate_limited', 'Too many operations of this socket wait.', { retryAfter: 1 });
    connection.waiting++;
    connection.turn = connection.turn.then(() => new Promise((resume) => setImmediate(resume)));
    await connection.turn.finally(() => connection.waiting--);
    await admit(viewer, addressOf(request));
    const end = await operations.begin(viewer, gone.signal);
    let operation: ReturnType<typeof readOperation> = [];
    try {
      operation = readOperation(schema, payload);
    } finally {
      if (Array.isArray(operation)) end();
      else BEGUN.set(operation, { socket: connection.socket, id, end });
    }
    return operation;
  } catch (error) {
    return [mask(error)];
  }
}

/** Authenticates the client of a socket. @returns whether it may use the service */
async function connect(
  connection: Connection,
  parameters: Record<string, unknown> | undefined,
  { authenticate, onCredentialEnd, onError, places, counts }: Omit<SocketOptions, 'contextOf'> & Shared,
): Promise<boolean> {
  const { request, socket } = connection;
  const given = parameters?.authorization ?? parameters?.Authorization ?? request.headers.authorization;
  const authorization = typeof given === 'string' ? given : undefined;
  const viewer = await authenticate(authorization, addressOf(request)).catch((error) => {
    if (shownError(error, onError).code === 'unavailable') closeForNow(socket);
    return null;
  });
  // A socket that has closed meanwhile leaves nothing any more.
  if (!viewer || socket.readyState !== WebSocket.OPEN) return false;
  try {
    places.take(viewer, socket);
  } catch {
    closeForNow(socket);
    return false;
  }
  const gone = new AbortController();
  const credential = onCredentialEnd(viewer, (how: CredentialEnd) => {
    // Until the client answers the close, the socket still takes messages.
    gone.abort();
    if (how === 'ended') socket.close(FORBIDDEN, 'The credential has ended');
    else closeForNow(socket);
  });
  socket.once('close', () => {
    credential.forget();
    gone.abort();
  });
  counts.admit(socket, callerOf(viewer));
  Object.assign(connection, { viewer, gone, waiting: 0, turn: Promise.resolve() });
  await credential.checked;
  return true;
}

const closeForNow = (socket: WebSocket): void => socket.close(TRY_AGAIN, 'The service is not available at the moment.');
