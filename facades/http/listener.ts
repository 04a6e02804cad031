/** The public listener: request ids, limits, headers, and one format for every error. */
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError, type ErrorCode, schema } from '../../schema/index.ts';
import type { Operation } from '../compile/operation.ts';
import { readOperations } from '../compile/read.ts';
import { type OnAnswer, type OpenSpan, withinSpan } from '../compile/run.ts';
import { restTerms, toolTerms } from '../compile/terms.ts';
import { wantsPage } from '../formats/receipt.ts';
import { type McpOptions, mcp } from '../mcp/http.ts';
import { openapi } from '../openapi/document.ts';
import {
  type Admit,
  type AdmitPublic,
  admission,
  earlyRefusal,
  pageAdmission,
  publicAdmission,
  readmission,
} from '../rate-limit/admission.ts';
import { readingAtTurn, takeTurns } from '../rate-limit/turns.ts';
import { sendEncoded } from '../site/encoded.ts';
import type { Brand } from '../site/frame.ts';
import type { Pages } from '../site/pages.ts';
import { site } from '../site/site.ts';
import { clientErrors, headFault, rawResponse } from './client-errors.ts';
import { type ConnectionLimits, networkLimits } from './connections.ts';
import { downloadable, downloads } from './downloads.ts';
import { type ErrorResponder, errorResponder } from './errors.ts';
import { guardedApp } from './guarded-app.ts';
import { API_HEADERS, JSON_TYPE, methodsOf, PAGE_CSP, PROBLEM_TYPE, preflightHeaders } from './headers.ts';
import { readJson } from './json.ts';
import { oauth, oauthError } from './oauth.ts';
import { lostPaths } from './paths.ts';
import { processorWebhooks } from './processor-webhooks.ts';
import { type ProxyWatch, proxyCheck } from './proxies.ts';
import { rest } from './rest.ts';

export interface PublicOptions extends Omit<McpOptions, 'operations' | 'errorResponse'> {
  newRequestId: () => string;
  /** Default: the name and the colour of the project. */
  brand?: Brand;
  /** Default: the documents of the service. */
  operations?: readonly Operation[];
  /** The proxies (addresses or CIDR) whose X-Forwarded-For the service trusts. Default: none. */
  trustedProxies?: string[];
  /** Sees every request. */
  proxyWatch?: ProxyWatch;
  /** Absent without a limit. */
  connectionLimits?: ConnectionLimits;
  /** The URL of the onion service, at which Tor Browser offers the same pages. Absent: there is none beside `publicUrl`. */
  onionUrl?: string | undefined;
  /** The folder of the downloads. Default: the folder that `npm run package` writes. */
  downloads?: string;
}

/** The look of a service without a configured one. */
const FREEHOLD: Brand = { name: 'Freehold', color: '#1f6f54' };
const KIB = 1024;
const BODY_MAX = 128 * KIB;
/** Node's limit leaves no request to answer, so `headFault` has a lower one. */
const NODE_HEADERS_MAX = 64 * KIB;
/** Shutdown grace period for requests in flight. */
const SHUTDOWN_GRACE_MS = 10_000;

/** Builds the server for REST and MCP. It does not listen yet, so that callers can add routes. */
export async function publicServer(options: PublicOptions): Promise<FastifyInstance> {
  const {
    publicUrl,
    newRequestId,
    onError,
    onAnswer,
    openSpan,
    authenticate,
    rateLimits,
    trustedProxies = [],
    connectionLimits,
    operations = readOperations(schema),
  } = options;
  const terms = restTerms(operations);
  const errorResponse = errorResponder(publicUrl, onError, terms);
  let pages: (() => Promise<Pages>) | undefined;
  const send = errorSender(errorResponse, async (title, detail) => (await pages?.())?.error(title, detail));
  const lost = lostPaths(operations);
  const isProxy = proxyCheck(trustedProxies);
  const admit = admission(authenticate, rateLimits);
  const admitPublic = publicAdmission(admit);
  const { app, unread } = guardedApp({
    genReqId: newRequestId,
    bodyLimit: BODY_MAX,
    maxHeaderSize: NODE_HEADERS_MAX,
    shutdownGraceMs: SHUTDOWN_GRACE_MS,
    trustProxy: trustedProxies.length ? isProxy : false,
    frameworkErrors: (error, request, reply) => {
      reply.headers(API_HEADERS).header('x-request-id', request.id);
      admitPublic(request, reply).then(
        () => send(error, request, reply),
        (limited: Error) => send(limited, request, reply),
      );
    },
    clientErrorHandler: clientErrors(errorResponse, newRequestId),
    onRequest: (request, reply, done) => {
      request.startedAt = performance.now();
      options.proxyWatch?.see(request.raw);
      reply.headers(API_HEADERS).header('x-request-id', request.id);
      const fault = headFault(request, reply);
      if (!fault && !request.is404) return done();
      // The search for a similar path costs more than the refusal of a caller above its limit.
      admitPublic(request, reply).then(() => done(fault ?? new ApiError('not_found', lost(request.url))), done);
    },
    connections: connectionLimits && {
      isProxy,
      limitsOf: networkLimits(connectionLimits),
      refusalText: (refusal) => {
        const requestId = newRequestId();
        return rawResponse(errorResponse(refusal, requestId), requestId);
      },
    },
  });
  app.decorateRequest('viewer', null);
  app.decorateRequest('startedAt', 0);
  app.decorateRequest('span', null);
  if (openSpan) trace(app, openSpan);
  app.setErrorHandler(send);
  takeTurns(app);
  app.addHook('onSend', (request, reply, payload, done) => {
    if (options.onionUrl && isPage(reply)) reply.header('onion-location', options.onionUrl + request.url);
    if (onAnswer) tell(request, reply, onAnswer);
    done(null, payload);
  });
  app.removeAllContentTypeParsers();
  const readBody = readingAtTurn((body) => (body.length ? readJson(body) : undefined));
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, readBody);
  app.setNotFoundHandler(({ url }) => {
    throw new ApiError('not_found', lost(url));
  });
  let made: ReturnType<typeof openapi> | undefined;
  const document = () => (made ??= openapi(operations, publicUrl));
  const { brand = FREEHOLD } = options;
  pages = await site(app, {
    ...options,
    brand,
    operations,
    document,
    terms,
    lost,
    admit: pageAdmission(rateLimits),
    downloadable: downloadable(options.downloads),
  });
  downloads(app, { ...options, admit, showDownloads: async (files) => (await pages!()).downloads(files) });
  processorWebhooks(app, { ...options, admit, refuseEarly: earlyRefusal(rateLimits) });
  rest(app, { ...options, operations, admit, readmit: readmission(authenticate), onWrite: unread.note });
  oauth(app, publicUrl, admitPublic);
  serveDocument(app, admit, document);
  const toolErrors = errorResponder(publicUrl, onError, toolTerms(operations));
  const sendError = errorSender(toolErrors, async () => undefined);
  await app.register(mcp, { ...options, operations, errorResponse: toolErrors, sendError, onWrite: unread.note });
  otherMethods(app, operations, { admit, admitPublic });
  return app;
}

/** Serves the OpenAPI document. */
function serveDocument(app: FastifyInstance, admit: Admit, document: () => object): void {
  const onRequest = (request: FastifyRequest, reply: FastifyReply) => admit(request, reply);
  let text: string | undefined;
  app.get('/v1/openapi.json', { onRequest }, async (request, reply) => {
    text ??= JSON.stringify(document());
    return sendEncoded(request, reply, text, 'public, max-age=60');
  });
}

/** Answers the other methods of a path with 404 and the header Allow, and OPTIONS. The contract has no 405. */
function otherMethods(
  app: FastifyInstance,
  operations: readonly Operation[],
  { admit, admitPublic }: { admit: Admit; admitPublic: AdmitPublic },
): void {
  const preflight = async (request: FastifyRequest, reply: FastifyReply) => {
    // Browsers send preflights by themselves, so these have a count of their own.
    await admit(request, reply, 'unread', { kind: 'OPTIONS' });
    const { 'content-length': length = '0', 'transfer-encoding': coding } = request.headers;
    if (length !== '0' || coding !== undefined) throw new ApiError('body_too_large', 'OPTIONS takes no body.');
  };
  for (const { url, methods, others } of methodsOf(operations)) {
    const allow = methods.join(', ');
    const headers = preflightHeaders(allow);
    const refuse = async (request: FastifyRequest, reply: FastifyReply) => {
      await admitPublic(request, reply);
      throw new ApiError('not_found', `The path does not have this method. It has ${allow}.`, { headers: { allow } });
    };
    app.route({ method: others, url, onRequest: refuse, handler: () => {} });
    app.options(url, { onRequest: preflight }, (_request, reply) => reply.headers(headers).send(''));
  }
}

const FRAMEWORK_ERRORS: Readonly<Record<string, readonly [code: ErrorCode, detail?: string]>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['unsupported_media_type'],
  FST_ERR_CTP_BODY_TOO_LARGE: ['body_too_large'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['malformed_json', 'The length of the body differs from Content-Length.'],
  FST_ERR_BAD_URL: ['not_found', 'The URL is not valid.'],
  FST_ERR_MAX_PARAM_LENGTH: ['not_found'],
};

const CUT_OFF = ['malformed_json', 'The body did not arrive completely.'] as const;

/** Makes the page of an error, for people. */
type ShowError = (title: string, detail: string) => Promise<string | undefined>;

function errorSender(errorResponse: ErrorResponder, showError: ShowError) {
  return async (error: FastifyError | Error, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const refusal = error === request.raw.errored ? CUT_OFF : FRAMEWORK_ERRORS[(error as FastifyError).code];
    const response = errorResponse(
      refusal ? new ApiError(...refusal) : error,
      request.id,
      request.routeOptions.config?.operation,
    );
    const { status, headers } = response;
    const page = isForBrowser(request) && (await showError(String(response.body.title), String(response.body.detail)));
    if (page) {
      reply.code(status).headers({ ...headers, 'content-type': PAGE_TYPE, 'content-security-policy': PAGE_CSP });
      return reply.header('cache-control', 'no-store').send(page);
    }
    const body = request.url.startsWith('/v1/oauth/') ? oauthError(response) : response.body;
    const problem = request.headers.accept?.includes(PROBLEM_TYPE);
    reply
      .code(status)
      .headers(headers)
      .header('content-type', problem ? PROBLEM_TYPE : JSON_TYPE);
    return reply.header('cache-control', 'no-store').send(JSON.stringify(body));
  };
}

const PAGE_TYPE = 'text/html; charset=utf-8';
/** Whether a browser asks for a page of the site, or for a path that does not exist. */
const isPage = (reply: FastifyReply): boolean => String(reply.getHeader('content-type')).startsWith('text/html');
const isForBrowser = ({ is404, routeOptions, headers: { accept } }: FastifyRequest): boolean =>
  (is404 || routeOptions.config.isPage === true) && wantsPage(accept);

/** Opens the span of each request. The bytes of its body come outside of the span, so the handler enters it again. */
function trace(app: FastifyInstance, openSpan: OpenSpan): void {
  app.addHook('onRequest', (request, _reply, done) => {
    request.span = openSpan();
    request.span.within(done);
  });
  app.addHook('preHandler', ({ span }, _reply, done) => withinSpan(span, done));
}

/** Tells of an answer, as far as a caller has waited for its beginning. A call of MCP tells of itself, too. */
function tell(
  { id: requestId, routeOptions, startedAt, span }: FastifyRequest,
  reply: FastifyReply,
  onAnswer: OnAnswer,
): void {
  const { url = 'unknown path', config } = routeOptions;
  const { operation, isPage } = config;
  const facade = operation ? 'rest' : isPage ? 'site' : 'http';
  // Fastify refuses some requests before any hook.
  const ms = startedAt && performance.now() - startedAt;
  onAnswer({ facade, operation: operation ?? url, status: reply.statusCode, ms, requestId, span: span ?? undefined });
}
