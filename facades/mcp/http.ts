/** Mounts the MCP endpoint on the public listener: POST, GET and DELETE /mcp. */
import { toNodeHandler } from '@modelcontextprotocol/node';
import {
  type AuthInfo,
  localhostAllowedOrigins,
  PARSE_ERROR,
  validateOriginHeader,
} from '@modelcontextprotocol/server';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../../schema/index.ts';
import type { Log } from '../errors.ts';
import { deeperThan, readUtf8 } from '../json.ts';
import { admission, type RateLimits, rateHeaders, refuseDenied } from '../rate-limit.ts';
import { mcpHandler } from './server.ts';
import { type Count, type ToolOptions, toolsOf } from './tools.ts';

export interface McpOptions extends ToolOptions {
  publicUrl: string;
  /** Host names of origins, beside our own and localhost, from which browsers may call. */
  mcpOrigins?: string[];
  onError: Log;
  /** Absent: nobody is limited. */
  rateLimits?: RateLimits;
}

const BODY_MAX = 256 * 1024;
/** Arguments may have ten levels, as bodies; the message around them takes a few more. */
const DEPTH_MAX = 16;
const SERVER_ERROR = -32_000;

/** A Fastify plugin: it has a content-type parser and an error handler of its own, because it speaks JSON-RPC. */
export async function mcp(app: FastifyInstance, options: McpOptions): Promise<void> {
  const { authenticate, onError, publicUrl, rateLimits, mcpOrigins = [] } = options;
  const handler = mcpHandler(toolsOf(options), onError);
  const serve = toNodeHandler(handler, { onerror: ({ name, stack }) => onError({ name, stack }) });
  const origins = [new URL(publicUrl).hostname, ...localhostAllowedOrigins(), ...mcpOrigins];
  // Only calls of tools are counted, where they are known, and credentials that are refused.
  const admit = admission(authenticate, rateLimits, 'refused');
  app.addHook('onClose', () => handler.close());
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: BODY_MAX }, (_request, body: Buffer, done) => {
    try {
      const message = body.length ? JSON.parse(readUtf8(body)) : undefined;
      if (deeperThan(message, DEPTH_MAX)) throw new ApiError('malformed_json');
      done(null, message);
    } catch {
      done(new ApiError('malformed_json'), undefined);
    }
  });
  app.setErrorHandler(jsonRpcErrors(app.errorHandler));
  app.route({
    method: ['GET', 'POST', 'DELETE'],
    url: '/mcp',
    bodyLimit: BODY_MAX,
    exposeHeadRoute: false,
    onRequest: async (request, reply) => {
      // The specification of the transport asks for this against DNS rebinding; without an Origin nobody is refused.
      if (!validateOriginHeader(request.headers.origin, origins).ok) throw new ForeignOrigin();
      await admit(request, reply);
    },
    handler: async (request, reply) => {
      for (const [name, value] of Object.entries(reply.getHeaders())) reply.raw.setHeader(name, value as string);
      reply.raw.removeHeader('content-type');
      reply.hijack();
      await serve(
        Object.assign(request.raw, { auth: authOf(request, counter(rateLimits, request, reply)) }),
        reply.raw,
        request.body,
      );
    },
  });
}

/** The SDK hands this to the handlers untouched; the caller travels in it. The signal is the SDK's own. */
function authOf({ viewer, id, headers, ip }: FastifyRequest, count: Count): AuthInfo {
  const caller = { viewer, requestId: id, userAgent: headers['user-agent'] ?? null, address: ip, count };
  return { token: '', clientId: '', scopes: [], extra: { caller } };
}

/** The headers tell of the last call, if they have not been sent by then. */
function counter(rateLimits: RateLimits | undefined, { ip }: FastifyRequest, { raw }: FastifyReply): Count {
  return async (viewer) => {
    if (!rateLimits) return;
    const standing = await rateLimits.take(viewer, ip);
    if (!raw.headersSent) for (const [name, value] of Object.entries(rateHeaders(standing))) raw.setHeader(name, value);
    refuseDenied(standing);
  };
}

class ForeignOrigin extends Error {}

type ErrorHandler = (error: Error, request: FastifyRequest, reply: FastifyReply) => void;

/** What comes before JSON-RPC is answered in its form; only a bad credential is answered as everywhere (RFC 6750). */
function jsonRpcErrors(otherwise: ErrorHandler): ErrorHandler {
  return (error, request, reply) => {
    const answer = (status: number, code: number, message: string) =>
      reply.code(status).send(JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id: null }));
    const { code } = error as { code?: string };
    if (error instanceof ForeignOrigin) answer(403, SERVER_ERROR, 'The Origin is not allowed.');
    else if (code === 'malformed_json') answer(400, PARSE_ERROR, 'Parse error: the body is not valid JSON.');
    else if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') answer(400, SERVER_ERROR, 'The body is too large.');
    else otherwise(error, request, reply);
  };
}
