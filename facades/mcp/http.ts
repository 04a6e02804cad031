/** Mounts the MCP endpoint on the public listener: POST, GET and DELETE. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../../schema/index.ts';
import { isRecord } from '../compile/inputs.ts';
import { changeOf, type Operation } from '../compile/operation.ts';
import { JSON_TYPE } from '../http/headers.ts';
import { measure, readUtf8 } from '../http/json.ts';
import { resourceMetadataPath } from '../http/oauth.ts';
import { readmission } from '../rate-limit/admission.ts';
import { rateHeaders, refuseCaller } from '../rate-limit/rate-headers.ts';
import type { Call, RateLimits } from '../rate-limit/rate-limit.ts';
import { readingAtTurn } from '../rate-limit/turns.ts';
import { authInfoOf, type Count, type Messages } from './caller.ts';
import type { Serving, ServingOptions } from './serving.ts';
import { admitMessages, InvalidMessages } from './transport/messages.ts';
import { INVALID_REQUEST, idOf, PARSE_ERROR, rpcErrorBody, SERVER_ERROR } from './transport/rpc.ts';

export interface McpOptions extends Omit<ServingOptions, 'onWrite'> {
  /** Host names of further origins from which browsers may call. The service's own and localhost always may. */
  mcpOrigins?: string[];
  /** Absent: there are no limits. */
  rateLimits?: RateLimits;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The messages that may be served. Null before they have counted. */
    admitted: { count: Count; messages: Messages } | null;
  }
}

interface Mount extends McpOptions, ServingOptions {
  /** Answers a refusal that comes before a message is read, in the words of tools. */
  sendError: ErrorHandler;
}

/** /mcp also serves callers without a credential. /mcp/secure answers them 401, which makes OAuth clients fetch a token. */
export const MCP_PATHS = ['/mcp', '/mcp/secure'] as const;
/** Hosts of origins that may always call. */
const LOCAL_ORIGINS = ['localhost', '127.0.0.1', '[::1]'];
/** The messages that older clients send before their first call. */
const OPENING: ReadonlySet<unknown> = new Set(['initialize', 'notifications/initialized']);
const BODY_MAX = 256 * 1024;
const SMALL_MAX = 8 * 1024;
/** A batch keeps all its messages until the last answer. */
const BATCH_BYTES_MAX = 64 * 1024;
const LARGE_BATCH = `A batch has at most ${BATCH_BYTES_MAX / 1024} KiB. Send its messages one by one.`;
/** Arguments may have ten levels, like bodies. The message around them adds a few. */
const DEPTH_MAX = 16;

/** A Fastify plugin with a content-type parser and an error handler of its own, for JSON-RPC. */
export async function mcp(app: FastifyInstance, options: Mount): Promise<void> {
  const { authenticate, publicUrl, mcpOrigins = [] } = options;
  /** The SDK and the tools. The first message loads them. */
  let serving: Promise<Serving> | undefined;
  const served = () => (serving ??= import('./serving.ts').then(({ servingOf }) => servingOf(options)));
  const origins = new Set([new URL(publicUrl).hostname, ...LOCAL_ORIGINS, ...mcpOrigins]);
  const counter = new Counter(options);
  const readmit = readmission(authenticate);
  // Open streams would keep the listener from closing.
  app.addHook('preClose', async () => (await serving)?.close());
  app.decorateRequest('admitted', null);
  readMessages(app);
  const refuse = jsonRpcErrors(options.sendError);
  app.setErrorHandler(async (error: Error, request, reply) => {
    refuse(await counter.refused(error, request, reply), request, reply);
    return reply;
  });
  for (const url of MCP_PATHS) {
    const metadata = publicUrl + resourceMetadataPath(url);
    app.route({
      method: ['GET', 'POST', 'DELETE'],
      url,
      bodyLimit: BODY_MAX,
      exposeHeadRoute: false,
      onRequest: async (request, reply) => {
        // The transport's specification requires this check against DNS rebinding. Requests without an Origin pass.
        if (isForeign(request.headers.origin, origins)) throw new ForeignOrigin();
        request.viewer = await authenticate(request.headers.authorization, request.ip);
        if (isLarge(request)) await counter.countEarly(request, reply);
        if (url === '/mcp/secure' && !request.viewer)
          throw new ApiError('missing_credential', undefined, {
            headers: { 'www-authenticate': `Bearer realm="svc", resource_metadata="${metadata}"` },
          });
      },
      // Until the handler begins, the body counts among those that wait.
      preValidation: async (request, reply) => {
        await readmit(request);
        const count = counter.of(request, reply);
        request.admitted = { count, messages: await admitMessages(request, authenticate, count) };
      },
      handler: async (request, reply) => {
        const { viewOf, serve } = await served();
        const view = viewOf(request.query as Record<string, unknown>);
        const { 'content-type': _, ...headers } = reply.getHeaders() as Record<string, string>;
        reply.hijack();
        const { viewer, id: requestId, ip: address } = request;
        const { host, 'user-agent': userAgent = null } = request.headers;
        const authInfo = authInfoOf({ viewer, requestId, userAgent, address, host, view, ...request.admitted! });
        await serve(request.raw, reply.raw, { authInfo, takeBody: () => takeBody(request), headers });
      },
    });
  }
}

/** Takes the body from its request. A stream keeps the request for as long as it lasts. */
function takeBody(request: FastifyRequest): unknown {
  const { body } = request;
  request.body = undefined;
  return body;
}

/** Reads every body as JSON, because the SDK refuses other content types itself. Fastify finds a named type faster. */
function readMessages(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  const options = { parseAs: 'buffer', bodyLimit: BODY_MAX } as const;
  app.addContentTypeParser(['application/json', '*'], options, readingAtTurn(readMessage));
}

/** @throws ApiError malformed_json or body_too_large */
function readMessage(body: Buffer): unknown {
  const text = readUtf8(body);
  measure(text, DEPTH_MAX);
  const message = text ? parsed(text) : undefined;
  if (Array.isArray(message) && body.length > BATCH_BYTES_MAX) throw new ApiError('body_too_large', LARGE_BATCH);
  return message;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ApiError('malformed_json');
  }
}

/** Counts for the rate limits, and remembers the requests that were counted. */
class Counter {
  readonly #rateLimits: RateLimits | undefined;
  readonly #counted = new WeakSet<FastifyRequest>();
  /** The requests that were counted before their bodies, and whose first message has not come. */
  readonly #countedEarly = new WeakSet<FastifyRequest>();
  /** By the name of the tool. */
  readonly #operations: ReadonlyMap<unknown, Operation>;

  constructor({ rateLimits, operations }: Pick<McpOptions, 'rateLimits' | 'operations'>) {
    this.#rateLimits = rateLimits;
    this.#operations = new Map(
      operations.flatMap((operation) => (operation.tool ? [[operation.tool.name, operation]] : [])),
    );
  }

  /** Returns a function that counts the messages of a request. Only one of their refusals comes late. */
  of(request: FastifyRequest, reply: FastifyReply): Count {
    let wasLate = false;
    return async (viewer, message) => {
      this.#counted.add(request);
      if (!this.#rateLimits) return;
      const isSender = viewer?.credentialId === request.viewer?.credentialId;
      const counted = isSender && this.#countedEarly.delete(request);
      const standing = await this.#rateLimits.take(viewer, request.ip, { ...this.#callOf(message), counted });
      if (!reply.sent && standing.windows.length) reply.headers(rateHeaders(standing));
      const isLate = standing.isLate === true && !wasLate;
      wasLate ||= isLate;
      await refuseCaller({ ...standing, isLate }, reply);
    };
  }

  /**
   * Counts the first message of a request before its body, because the body may never end.
   * @throws ApiError rate_limited, unless the message may be an urgent call
   */
  async countEarly(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const standing = await this.#rateLimits?.take(request.viewer, request.ip);
    if (!standing) return;
    if (standing.deniedUntil && this.#rateLimits!.hasUrgentCalls(request.viewer, request.ip)) return;
    this.#counted.add(request);
    this.#countedEarly.add(request);
    reply.headers(rateHeaders(standing));
    await refuseCaller(standing, reply);
  }

  /** The call of a tool. A message that begins a session is urgent, because the session may serve an urgent tool. */
  #callOf(message: unknown): Call {
    if (!isRecord(message)) return {};
    const { method, params } = message;
    if (method !== 'tools/call') return { urgent: OPENING.has(method) };
    const operation = isRecord(params) && this.#operations.get(params.name);
    return operation ? { urgent: operation.urgent, change: changeOf(operation) } : {};
  }

  /** Counts a request that was refused before its messages were. @returns the refusal */
  async refused(error: Error, request: FastifyRequest, reply: FastifyReply): Promise<Error> {
    // Without a database there is no check of a credential, and so no guess to count.
    const isFault = !(error instanceof ApiError || error instanceof ForeignOrigin || 'statusCode' in error);
    if (isFault || this.#counted.has(request)) return error;
    return this.of(
      request,
      reply,
    )(request.viewer).then(
      () => error,
      (refusal) => refusal,
    );
  }
}

/** Whether reading the body costs more than a refusal. The service reads smaller ones, because an error needs the id of its call. */
const isLarge = ({ headers }: FastifyRequest): boolean =>
  Number(headers['content-length'] ?? 0) > SMALL_MAX || headers['transfer-encoding'] !== undefined;

class ForeignOrigin extends Error {}

function isForeign(origin: string | undefined, ours: ReadonlySet<string>): boolean {
  return Boolean(origin) && !ours.has(URL.parse(origin!)?.hostname ?? '');
}

type ErrorHandler = (error: Error, request: FastifyRequest, reply: FastifyReply) => void;

/** Answers errors before a JSON-RPC message as JSON-RPC errors. Refused credentials get the format of REST (RFC 6750). */
function jsonRpcErrors(otherwise: ErrorHandler): ErrorHandler {
  return (error, request, reply) => {
    const answer = (status: number, code: number, message: string, more = {}) =>
      reply
        .code(status)
        .header('content-type', JSON_TYPE)
        .send(JSON.stringify(rpcErrorBody(code, message, idOf(request.body), more)));
    const { code } = error as { code?: string };
    if (error instanceof ApiError && error.code === 'rate_limited') {
      const retry_after = error.extras.retryAfter;
      reply.header('retry-after', String(retry_after));
      return answer(429, SERVER_ERROR, error.message, { data: { code, retry_after } });
    }
    if (error instanceof InvalidMessages) answer(400, error.code, error.message);
    else if (error instanceof ForeignOrigin) answer(403, SERVER_ERROR, 'The Origin is not allowed.');
    else if (code === 'malformed_json') answer(400, PARSE_ERROR, 'Parse error: the body is not valid JSON.');
    else if (code === 'invalid_query') answer(400, SERVER_ERROR, error.message);
    else if (code === 'body_too_large') answer(400, INVALID_REQUEST, error.message);
    else if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') answer(415, SERVER_ERROR, 'Send the body as application/json.');
    else if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') answer(400, SERVER_ERROR, 'The body is too large.');
    else otherwise(error, request, reply);
  };
}
