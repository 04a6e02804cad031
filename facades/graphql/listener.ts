/**
 * The internal listener for the operator's tools: GraphQL over HTTP, SSE and WebSocket, GraphiQL, the console, and the probes.
 * GraphQL needs a credential. The operator's token sees every account. A customer's credential sees its own.
 */
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type Server,
  type ServerResponse,
} from 'node:http';
import { parse } from 'graphql';
import type { Plugin, YogaServerInstance, YogaServerOptions } from 'graphql-yoga';
import { ApiError, type Context, schema, type Viewer } from '../../schema/index.ts';
import type { OnAnswer, OpenSpan } from '../compile/run.ts';
import { serveConsole } from '../console/console.ts';
import { answerSignIn, SIGN_IN_PATH } from '../console/sign-in.ts';
import { ArrivingBytes } from '../http/arriving-bytes.ts';
import { lacksHost, serveInOrder } from '../http/pipelining.ts';
import { UnreadBytes, type UnreadLimits } from '../http/unread-bytes.ts';
import { type Mask, masking, refusalsOf, unreadableRequests } from './errors.ts';
import { asksForGraphiql, serveGraphiql } from './graphiql.ts';
import { isTooLarge, TOKENS_MAX, tooLargeAnswer } from './limits.ts';
import { Operations } from './operations.ts';
import { acceptSockets, addressOf, type SocketOptions } from './sockets.ts';
import { watchShort } from './watchers.ts';

const PATH = '/graphql';
const METRICS_PATH = '/metrics';
/** The time between two looks at the unread bytes of a response. */
const LOOK_MS = 1_000;
/** The time for which an answer about readiness holds. Probes may come from many tools, and from strangers. */
const READY_MS = 1_000;
/** The time for a request to arrive, and the interval in which Node looks for slow ones. */
const TIMES = { headersTimeout: 15_000, requestTimeout: 15_000, connectionsCheckingInterval: 1_000 };
/** Bytes of a request body. */
const BODY_MAX = 128 * 1024;
export interface InternalOptions extends SocketOptions {
  /** Whether the service can serve requests. */
  ready(): Promise<boolean>;
  /** Aborts when the service is no longer ready, because it stops soon. */
  leaving?: AbortSignal;
  onAnswer?: OnAnswer;
  openSpan?: OpenSpan | undefined;
  /** The page of metrics, for readers with the header Authorization. @throws ApiError if the reader may not read it */
  metrics?(authorization: string | undefined, address: string | null): Promise<MetricsPage>;
  /** The bounds of unread answers. Default: those of the public listener. */
  unread?: Partial<UnreadLimits>;
}

/** A page for Prometheus. */
interface MetricsPage {
  type: string;
  text: string;
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
  /** The caller by the credential of the request. */
  viewer: Viewer;
}

/** A failed subscription over SSE breaks off. A client takes a whole response for the end of its subscription. */
const brokenStreams: Plugin<Responding> = {
  onSubscribe: ({ args }) => ({
    onSubscribeError: () => void (args.contextValue as Responding).res.destroy(),
  }),
};

export function internalListener(options: InternalOptions): InternalListener {
  const { authenticate, admit, contextOf, onError } = options;
  const mask = masking(onError);
  const operations = new Operations(admit, options.onAnswer, options.openSpan);
  const ready = heldFor(READY_MS, options.ready);
  const viewerOf = async ({ headers }: Request, req: IncomingMessage): Promise<Viewer> => {
    const viewer = await authenticate(headers.get('authorization') ?? undefined, addressOf(req));
    if (!viewer) throw new ApiError('missing_credential');
    return viewer;
  };
  /** Authenticates each request before the service reads its body. */
  const credentials: Plugin<Responding> = {
    onRequestParse: async ({ request, serverContext }) => {
      const responding = serverContext as unknown as Responding;
      const { req } = responding;
      responding.viewer = await viewerOf(request, req);
      await admit(responding.viewer, addressOf(req));
    },
  };
  /** Lets each operation wait for its turn before the service parses it. */
  const turns: Plugin<Responding> = {
    onParams: ({ paramsHandler, setParamsHandler }) =>
      setParamsHandler(async (given) => {
        try {
          const end = await operations.begin((given.context as unknown as Responding).viewer, given.request.signal);
          return await Promise.resolve(paramsHandler(given)).finally(end);
        } catch (error) {
          return { errors: [mask(error)] };
        }
      }),
    onExecute: ({ executeFn, setExecuteFn }) => setExecuteFn((args) => operations.run(args, executeFn)),
    onSubscribe: ({ setSubscribeFn }) => setSubscribeFn((args) => operations.run(args, watchShort)),
  };
  const limits: Plugin = {
    onParse: ({ setParseFn }) => setParseFn((source, given) => parse(source, { ...given, maxTokens: TOKENS_MAX })),
    onValidate: ({ setValidationFn }) => setValidationFn(refusalsOf),
    onExecutionResult: ({ result, setResult }) => {
      if (result && 'data' in result && isTooLarge(result.data)) setResult({ errors: [tooLargeAnswer()] });
    },
  };
  const yogaOptions: YogaServerOptions<Responding, Context> = {
    schema,
    graphqlEndpoint: PATH,
    landingPage: false,
    graphiql: false,
    cors: false,
    logging: false,
    // Its keys would be whole requests.
    parserAndValidationCache: false,
    maxRequestBodySize: BODY_MAX,
    plugins: [credentials, turns, limits, unreadableRequests, brokenStreams],
    maskedErrors: { maskError: mask },
    context: async ({ request, req }) => {
      const { headers, signal } = request;
      // The body may have come long after the headers, and the credential may have ended.
      const viewer = await viewerOf(request, req);
      return contextOf({ viewer, userAgent: headers.get('user-agent'), address: addressOf(req), signal });
    },
  };

  let yoga: Promise<YogaServerInstance<Responding, Context>> | undefined;
  const unread = new UnreadBytes(options.unread);
  const arriving = new ArrivingBytes();
  const server = createServer(TIMES, async (request, response) => {
    if (lacksHost(request) || hasWrongHost(request)) return response.writeHead(400, { connection: 'close' }).end();
    const path = request.url?.split('?')[0];
    if (path === PATH && asksForGraphiql(request)) return serveGraphiql(response);
    if (path === PATH) {
      const address = addressOf(request) ?? '';
      arriving.watch(request, response, address);
      request.once('end', () => arriving.forget(request, address));
      // Yoga waits for a slow reader, so nothing else looks at the response meanwhile.
      const look = setInterval(unread.note, LOOK_MS, response).unref();
      response.once('close', () => clearInterval(look));
      // Its first request loads Yoga: a tenth of a second, and 15 MB. Sockets do without it.
      yoga ??= import('graphql-yoga').then(({ createYoga }) => createYoga<Responding, Context>(yogaOptions));
      await (await yoga)(request, response);
      return unread.note(response);
    }
    if (path === SIGN_IN_PATH) {
      const stranger = { viewer: null, userAgent: request.headers['user-agent'] ?? null, address: addressOf(request) };
      return answerSignIn(request, response, (signal) => contextOf({ ...stranger, signal }), mask);
    }
    if (serveConsole(request, response)) return;
    if (path === METRICS_PATH && options.metrics) {
      const page = options.metrics(request.headers.authorization, addressOf(request));
      return page.then(
        ({ type, text }) => response.writeHead(200, { 'content-type': type }).end(text),
        (error) => refuseMetrics(response, error, mask),
      );
    }
    const [status, body] =
      path === '/healthz'
        ? [200, 'ok']
        : path === '/readyz'
          ? !options.leaving?.aborted && (await ready())
            ? [200, 'ready']
            : [503, 'not ready']
          : [404, 'not found'];
    response.writeHead(status as number, { 'content-type': 'text/plain; charset=utf-8' }).end(`${body}\n`);
  });
  serveInOrder(server);
  return { server, closeSockets: acceptSockets(server, PATH, { ...options, operations, unread }, mask) };
}

/** Answers a reader of metrics who may not read them, or a fault. */
function refuseMetrics(response: ServerResponse, error: unknown, mask: Mask): void {
  const { message, extensions } = mask(error);
  const { status = 500, headers = {} } = (extensions.http ?? {}) as { status?: number; headers?: OutgoingHttpHeaders };
  const challenge = status === 401 && { 'www-authenticate': 'Bearer' };
  response
    .writeHead(status, { ...headers, ...challenge, 'content-type': 'text/plain; charset=utf-8' })
    .end(`${message}\n`);
}

/** Whether the header Host is no name. Yoga makes a URL of it before anything else. */
const hasWrongHost = ({ headers: { host } }: IncomingMessage): boolean =>
  host !== undefined && !URL.canParse(`http://${host}`);

/** Returns a question whose answer holds for so long. */
function heldFor<T>(ms: number, ask: () => Promise<T>): () => Promise<T> {
  let [answer, since]: [Promise<T> | undefined, number] = [undefined, 0];
  return () => {
    if (answer && performance.now() - since < ms) return answer;
    since = performance.now();
    answer = ask();
    return answer;
  };
}
