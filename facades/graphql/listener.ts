/**
 * The internal listener for the operator's tools: GraphQL over HTTP, SSE and WebSocket, GraphiQL, and the probes. It needs a
 * credential. The operator's token sees every account. A customer's credential sees its own.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { renderGraphiQL } from '@graphql-yoga/render-graphiql';
import { parse } from 'graphql';
import { createYoga, type Plugin } from 'graphql-yoga';
import { ApiError, type Context, schema } from '../../schema/index.ts';
import { lacksHost, serveInOrder } from '../http/pipelining.ts';
import { masking, unreadableRequests } from './errors.ts';
import { limitsRule, TOKENS_MAX } from './limits.ts';
import { acceptSockets, addressOf, type SocketOptions } from './sockets.ts';

const PATH = '/graphql';
const QUERY = `# Put your credential into the headers below: {"Authorization": "Bearer …"}
# The operator's token is in the file that the service names when it starts.
subscription Servers {
  serverUpdated { type at server { orderNumber status hostname serviceCode region ipv4 } }
}
`;

export interface InternalOptions extends SocketOptions {
  /** Whether the service can serve requests. */
  ready(): Promise<boolean>;
}

export interface InternalListener {
  server: Server;
  /** Ends the WebSockets. The server does not count them among its connections. */
  closeSockets(): void;
}

/** The response to a request over HTTP, in the context of its operation. */
interface Responding {
  req: IncomingMessage;
  res: ServerResponse;
}

/** A failed subscription over SSE breaks off. A client takes a whole response for the end of its subscription. */
const brokenStreams: Plugin<Responding> = {
  onSubscribe: ({ args }) => ({
    onSubscribeError: () => void (args.contextValue as Responding).res.destroy(),
  }),
};

export function internalListener(options: InternalOptions): InternalListener {
  const { authenticate, contextOf, ready, onError } = options;
  const mask = masking(onError);
  const limits: Plugin = {
    onParse: ({ setParseFn }) => setParseFn((source, given) => parse(source, { ...given, maxTokens: TOKENS_MAX })),
    onValidate: ({ addValidationRule }) => addValidationRule(limitsRule),
  };
  const yoga = createYoga<Responding, Context>({
    schema,
    graphqlEndpoint: PATH,
    landingPage: false,
    graphiql: { title: 'Freehold', defaultQuery: QUERY },
    renderGraphiQL,
    cors: false,
    logging: false,
    parserAndValidationCache: true,
    plugins: [limits, unreadableRequests, brokenStreams],
    maskedErrors: { maskError: mask },
    context: async ({ request, req }) => {
      const address = addressOf(req);
      const viewer = await authenticate(request.headers.get('authorization') ?? undefined, address);
      if (!viewer) throw new ApiError('missing_credential');
      return contextOf({ viewer, userAgent: request.headers.get('user-agent'), address, signal: request.signal });
    },
  });

  const server = createServer(async (request, response) => {
    if (lacksHost(request)) return response.writeHead(400, { connection: 'close' }).end();
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
  serveInOrder(server);
  return { server, closeSockets: acceptSockets(server, PATH, options, mask) };
}
