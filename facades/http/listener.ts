/** The public listener: request ids, limits, headers, and one shape for every error. */
import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { ApiError, type ErrorCode, schema } from '../../schema/index.ts';
import type { Operation } from '../compile/operation.ts';
import { readOperations } from '../compile/read.ts';
import { type McpOptions, mcp } from '../mcp/http.ts';
import { openapi } from '../openapi/document.ts';
import { admission, readmission } from '../rate-limit/rate-limit.ts';
import { clientErrors, refuseLargeHead } from './client-errors.ts';
import { docs } from './docs.ts';
import { downloads } from './downloads.ts';
import { type AnswerError, errorAnswers, type Log } from './errors.ts';
import { API_HEADERS, JSON_TYPE, methodsOf, PROBLEM_TYPE, preflightHeaders } from './headers.ts';
import { readJson } from './json.ts';
import { oauth, oauthError } from './oauth.ts';
import { hooks } from './processor-webhooks.ts';
import { cached, rest } from './rest.ts';

export interface PublicOptions extends Omit<McpOptions, 'operations' | 'answerError'> {
  newRequestId: () => string;
  /** Told of every answer: method, template of the route, status, time, request id. By default nobody is. */
  onAnswer?: Log;
  /** By default the documents of the service. */
  operations?: readonly Operation[];
  /** The proxies (addresses or CIDR) whose X-Forwarded-For is believed; by default none. */
  trustedProxies?: string[];
  /** The folder of the downloads; by default where `npm run package` puts them. */
  downloads?: string;
}

const KIB = 1024;
const BODY_MAX = 128 * KIB;
/** Node's own limit: it leaves no request to answer, so ours is lower. */
const NODE_HEADERS_MAX = 64 * KIB;
/** How long a request may take to arrive; how long its answer takes is another matter (long polls). */
const REQUEST_TIMEOUT_MS = 15_000;
/** How often connections are looked at; Node's own half a minute would let the slow stay for three times as long. */
const CHECKING_MS = 1_000;
/** How long who is being answered when the service stops may take to hear the end of it. */
const ANSWER_MS = 10_000;

/** The instance that answers REST and MCP, not listening yet. More routes may be put on it before it listens. */
export async function publicServer(options: PublicOptions): Promise<FastifyInstance> {
  const {
    publicUrl,
    newRequestId,
    onError,
    onAnswer,
    authenticate,
    rateLimits,
    operations = readOperations(schema),
  } = options;
  const answerError = errorAnswers(publicUrl, onError);
  const send = errorSender(answerError);
  const app = Fastify({
    logger: false,
    genReqId: newRequestId,
    requestTimeout: REQUEST_TIMEOUT_MS,
    bodyLimit: BODY_MAX,
    trustProxy: options.trustedProxies?.length ? options.trustedProxies : false,
    return503OnClosing: false,
    http: {
      maxHeaderSize: NODE_HEADERS_MAX,
      headersTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: CHECKING_MS,
    },
    frameworkErrors: (error, request, reply) => {
      reply.headers(API_HEADERS).header('x-request-id', request.id);
      send(error, request, reply);
    },
    clientErrorHandler: clientErrors(answerError, newRequestId),
  });
  app.decorateRequest('viewer', null);
  app.setErrorHandler(send);
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers(API_HEADERS).header('x-request-id', request.id);
    refuseLargeHead(request, reply);
    done(request.is404 ? new ApiError('not_found') : undefined);
  });
  if (onAnswer) app.addHook('onResponse', accessLogger(onAnswer));
  // Who was being answered when the service stops must not keep the connection, or the stop would wait for it.
  let closing = false;
  app.addHook('preClose', async () => {
    closing = true;
    const cut = setTimeout(() => app.server.closeAllConnections(), ANSWER_MS);
    app.server.once('close', () => clearTimeout(cut));
  });
  app.addHook('onSend', async (_request, reply) => {
    if (closing) reply.header('connection', 'close');
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body: Buffer, done) => {
    try {
      done(null, body.length ? readJson(body) : undefined);
    } catch (error) {
      done(error as Error, undefined);
    }
  });
  app.setNotFoundHandler(() => {
    throw new ApiError('not_found');
  });
  docs(app);
  const admit = admission(authenticate, rateLimits);
  downloads(app, { ...options, admit });
  hooks(app, { ...options, admit });
  rest(app, { ...options, operations, admit, readmit: readmission(authenticate) });
  oauth(app, publicUrl);
  const document = JSON.stringify(openapi(operations, publicUrl));
  app.get('/v1/openapi.json', { onRequest: (request, reply) => admit(request, reply) }, async (request, reply) =>
    cached(request, reply, document, 'public, max-age=60'),
  );
  await app.register(mcp, { ...options, operations, answerError });
  otherMethods(app, operations);
  return app;
}

/** A known path answers 404 to other methods, with those that it has (405 is not in the contract), and OPTIONS. */
function otherMethods(app: FastifyInstance, operations: readonly Operation[]): void {
  for (const { url, methods, others } of methodsOf(operations)) {
    const allow = methods.join(', ');
    const headers = preflightHeaders(allow);
    const refuse = async () => {
      throw new ApiError('not_found', undefined, { headers: { allow } });
    };
    app.route({ method: others, url, onRequest: refuse, handler: refuse });
    app.options(url, (_request, reply) => reply.headers(headers).send(''));
  }
}

const FRAMEWORK_ERRORS: Readonly<Record<string, readonly [code: ErrorCode, detail?: string]>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['unsupported_media_type'],
  FST_ERR_CTP_BODY_TOO_LARGE: ['body_too_large'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['malformed_json', 'The body is not as long as Content-Length says.'],
  FST_ERR_BAD_URL: ['not_found'],
  FST_ERR_MAX_PARAM_LENGTH: ['not_found'],
};

const CUT_OFF = ['malformed_json', 'The body did not arrive as a whole.'] as const;

function errorSender(answerError: AnswerError) {
  return (error: FastifyError | Error, request: FastifyRequest, reply: FastifyReply) => {
    const known = error === request.raw.errored ? CUT_OFF : FRAMEWORK_ERRORS[(error as FastifyError).code];
    const answer = answerError(known ? new ApiError(...known) : error, request.id);
    const { status, headers } = answer;
    const body = request.url.startsWith('/v1/oauth/') ? oauthError(answer) : answer.body;
    const problem = request.headers.accept?.includes(PROBLEM_TYPE);
    reply
      .code(status)
      .headers(headers)
      .header('content-type', problem ? PROBLEM_TYPE : JSON_TYPE);
    reply.header('cache-control', 'no-store').send(JSON.stringify(body));
  };
}

/** Allow-listed: neither address, nor URL, nor anything that was sent. */
const accessLogger = (log: Log) => (request: FastifyRequest, reply: FastifyReply, done: () => void) => {
  log({
    method: request.method,
    route: request.routeOptions.url ?? null,
    status: reply.statusCode,
    ms: Math.round(reply.elapsedTime * 10) / 10,
    request_id: request.id,
  });
  done();
};
