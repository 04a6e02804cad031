/**
 * GraphQL over WebSocket. A socket keeps one credential for life, and closes when the credential ends. The code of the close
 * tells the client whether to come back.
 */
import type { IncomingMessage, Server } from 'node:http';
import { type GraphQLError, getOperationAST, OperationTypeNode } from 'graphql';
import type { ServerOptions } from 'graphql-ws';
import { type Extra, useServer } from 'graphql-ws/use/ws';
import { type WebSocket, WebSocketServer } from 'ws';
import { type Context, type CredentialEnd, schema, type Viewer } from '../../schema/index.ts';
import type { Authenticate, OnCredentialEnd } from '../compile/run.ts';
import { type Log, shownError } from '../http/errors.ts';
import { type Mask, maskingWithoutHttp, readOperation } from './errors.ts';

/** The close code of graphql-ws for a refused connection. */
const FORBIDDEN = 4403;
/** The close code of WebSocket (RFC 6455) for a service that stops. Clients reconnect. */
const GOING_AWAY = 1001;
/** The close code "try again later" of WebSocket. Clients reconnect. */
const TRY_AGAIN = 1013;
/** The time for clients to answer the close of their sockets. */
const CLOSING_MS = 2_000;

export interface SocketOptions {
  authenticate: Authenticate;
  contextOf(request: Pick<Context, 'viewer' | 'userAgent' | 'address' | 'signal'>): Context;
  onCredentialEnd: OnCredentialEnd;
  /** Receives faults, without any input value. */
  onError: Log;
}

interface Connection extends Extra {
  viewer: Viewer;
  gone: AbortController;
}
type Options = ServerOptions<Record<string, unknown>, Partial<Connection>>;

/** @returns a function that ends all sockets, also those of clients that do not answer */
export function acceptSockets(server: Server, path: string, options: SocketOptions, mask: Mask): () => void {
  // A WebSocketServer with the server would log its errors, such as a taken port. The start reports these.
  const sockets = new WebSocketServer({ noServer: true, path, maxPayload: 64 * 1024 });
  server.on('upgrade', (request, connection, head) =>
    sockets.handleUpgrade(request, connection, head, (socket) => sockets.emit('connection', socket, request)),
  );
  useServer(socketOptions(options, maskingWithoutHttp(mask)), sockets);
  return () => {
    for (const socket of sockets.clients) socket.close(GOING_AWAY, 'The service stops.');
    const deadline = setTimeout(() => {
      for (const socket of sockets.clients) socket.terminate();
    }, CLOSING_MS);
    server.once('close', () => clearTimeout(deadline));
  };
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
    onSubscribe: (_, __, payload) => readOperation(schema, payload),
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
      if (!result.errors) return undefined;
      const isSubscription = getOperationAST(document, operationName)?.operation === OperationTypeNode.SUBSCRIPTION;
      return { ...result, errors: shown(extra as Connection, result.errors, isSubscription) };
    },
  } as Options;
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
  Object.assign(connection, { viewer, gone });
  await credential.checked;
  return true;
}

const closeForNow = (socket: WebSocket): void => socket.close(TRY_AGAIN, 'The service is not available at the moment.');
