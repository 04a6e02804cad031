/**
 * The internal listener for the operator's tools: GraphQL over HTTP, SSE and WebSocket, GraphiQL, and the probes. It needs a
 * credential. The operator's token sees every account. A customer's credential sees its own.
 */
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { renderGraphiQL } from '@graphql-yoga/render-graphiql';
import { parse, subscribe } from 'graphql';
import type { ServerOptions as WsOptions } from 'graphql-ws';
import { type Extra, useServer } from 'graphql-ws/use/ws';
import { createYoga, type Plugin } from 'graphql-yoga';
import { WebSocketServer } from 'ws';
import { ApiError, type Context, schema, type Viewer } from '../../schema/index.ts';
import type { Authenticate, OnCredentialEnd } from '../compile/run.ts';
import { type Log, shownError } from '../http/errors.ts';
import type { AuditRequest } from '../http/requests.ts';
import { auditedExecute } from './audit.ts';
import { type Mask, masking, maskingWithoutHttp, readOperation, unreadableRequests } from './errors.ts';
import { limitsRule, TOKENS_MAX } from './limits.ts';

const PATH = '/graphql';
/** The close code of graphql-ws for a refused connection. */
const FORBIDDEN = 4403;
/** The close code "try again later" of WebSocket (RFC 6455). Clients reconnect. */
const TRY_AGAIN = 1013;

const QUERY = `# Put your credential into the headers below: {"Authorization": "Bearer …"}
# The operator's token is in the file that the service names when it starts.
subscription Servers {
  serverUpdated { type at server { orderNumber status hostname serviceCode region ipv4 } }
}
`;

export interface InternalOptions {
  authenticate: Authenticate;
  contextOf(request: Pick<Context, 'viewer' | 'userAgent' | 'address' | 'signal'>): Context;
  onCredentialEnd: OnCredentialEnd;
  /** Whether the service can serve requests. */
  ready(): Promise<boolean>;
  /** Receives mutations. */
  auditRequest: AuditRequest;
  /** Receives faults, without any input value. */
  onError: Log;
}

export function internalServer(options: InternalOptions): Server {
  const { authenticate, auditRequest, contextOf, ready, onError } = options;
  const mask = masking(onError);
  const limits: Plugin = {
    onParse: ({ setParseFn }) => setParseFn((source, given) => parse(source, { ...given, maxTokens: TOKENS_MAX })),
    onValidate: ({ addValidationRule }) => addValidationRule(limitsRule),
    onExecute: ({ setExecuteFn }) => setExecuteFn(auditedExecute(auditRequest)),
  };
  const yoga = createYoga<{ req: IncomingMessage }, Context>({
    schema,
    graphqlEndpoint: PATH,
    landingPage: false,
    graphiql: { title: 'Freehold', defaultQuery: QUERY },
    renderGraphiQL,
    cors: false,
    logging: false,
    parserAndValidationCache: true,
    plugins: [limits, unreadableRequests],
    maskedErrors: { maskError: mask },
    context: async ({ request, req }) => {
      const address = addressOf(req);
      const viewer = await authenticate(request.headers.get('authorization') ?? undefined, address);
      if (!viewer) throw new ApiError('missing_credential');
      return contextOf({ viewer, userAgent: request.headers.get('user-agent'), address, signal: request.signal });
    },
  });

  const server = createServer(async (request, response) => {
    const path = request.url?.split('?')[0];
    if (path === PATH) return yoga(request, response);
    const [status, body] =
      path === '/healthz'
        ? [200, 'ok']
        : path === '/readyz'
          ? (await ready())
            ? [200, 'ready']
            : [503, 'not ready']
          : [404, 'not found'];
    response.writeHead(status as number, { 'content-type': 'text/plain; charset=utf-8' }).end(`${body}\n`);
  });
  const sockets = new WebSocketServer({ server, path: PATH, maxPayload: 64 * 1024 });
  useServer(webSocketOptions(options, maskingWithoutHttp(mask)), sockets);
  server.on('close', () => sockets.close());
  return server;
}

const addressOf = ({ socket }: IncomingMessage): string | null => socket.remoteAddress ?? null;

interface Connection extends Extra {
  viewer: Viewer;
  gone: AbortController;
}

/** A socket keeps one credential for life, and closes when the credential ends. */
function webSocketOptions(
  { authenticate, auditRequest, contextOf, onCredentialEnd, onError }: InternalOptions,
  mask: Mask,
): WsOptions<Record<string, unknown>, Partial<Connection>> {
  return {
    schema,
    execute: auditedExecute(auditRequest),
    subscribe,
    onSubscribe: (_, __, payload) => readOperation(schema, payload),
    connectionInitWaitTimeout: 5_000,
    onConnect: async ({ connectionParams, extra }) => {
      const { request, socket } = extra as Extra;
      const authorization =
        connectionParams?.authorization ?? connectionParams?.Authorization ?? request.headers.authorization;
      const viewer = await authenticate(
        typeof authorization === 'string' ? authorization : undefined,
        addressOf(request),
      ).catch((error) => {
        if (shownError(error, onError).code === 'unavailable')
          socket.close(TRY_AGAIN, 'The service is not available at the moment.');
        return null;
      });
      if (!viewer) return false;
      const gone = new AbortController();
      const forget = onCredentialEnd(viewer, () => socket.close(FORBIDDEN, 'The credential has ended'));
      socket.once('close', () => {
        forget();
        gone.abort();
      });
      Object.assign(extra, { viewer, gone });
      return true;
    },
    context: ({ extra }) => {
      const { viewer, gone, request } = extra as Connection;
      const userAgent = request.headers['user-agent'] ?? null;
      return contextOf({ viewer, userAgent, address: addressOf(request), signal: gone.signal }) as never;
    },
    onError: (_, __, ___, errors) => errors.map(mask),
    onNext: (_, __, ___, ____, result) => (result.errors ? { ...result, errors: result.errors.map(mask) } : undefined),
  } as WsOptions<Record<string, unknown>, Partial<Connection>>;
}
