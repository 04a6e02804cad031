/** Mounts the MCP endpoint on the public listener: POST, GET and DELETE. */
import { toNodeHandler } from '@modelcontextprotocol/node';
import {
  localhostAllowedOrigins,
  type McpServerFactory,
  PARSE_ERROR,
  validateOriginHeader,
} from '@modelcontextprotocol/server';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../../schema/index.ts';
import type { OnCredentialEnd } from '../compile/run.ts';
import type { Log } from '../http/errors.ts';
import { JSON_TYPE } from '../http/headers.ts';
import { deeperThan, readUtf8 } from '../http/json.ts';
import { resourceMetadataPath } from '../http/oauth.ts';
import { admission, type RateLimits, rateHeaders, readmission, refuseDenied } from '../rate-limit/rate-limit.ts';
import { authInfoOf, type Count, type View } from './caller.ts';
import { type McpParts, partsOf } from './parts.ts';
import { Eras } from './protocol-versions.ts';
import { rpcErrorBody, SERVER_ERROR } from './rpc.ts';
import { serverFactory } from './server.ts';
import type { ToolOptions } from './tools.ts';

export interface McpOptions extends ToolOptions {
  /** Without a slash at its end. */
  publicUrl: string;
  /** Host names of origins, beside our own and localhost, from which browsers may call. */
  mcpOrigins?: string[];
  /** Signs sessions and questions. At least 32 bytes; the same in every process. */
  mcpSecret: Buffer;
  onCredentialEnd: OnCredentialEnd;
  /** Told of faults, without the values of inputs. */
  onError: Log;
  /** Absent: nobody is limited. */
  rateLimits?: RateLimits;
  /** Makes the servers; by default those of the service. Conformance tests bring servers of their own. */
  factoryOf?: (parts: McpParts) => McpServerFactory;
}

/** Without a credential one is served, and the other answers 401, as OAuth clients that fetch a token then need it. */
export const MCP_PATHS = ['/mcp', '/mcp/secure'] as const;
const REFUSALS: ReadonlySet<string> = new Set(['Error', 'ProtocolError']);
const BODY_MAX = 256 * 1024;
/** Arguments may have ten levels, as bodies; the message around them takes a few more. */
const DEPTH_MAX = 16;

/** A Fastify plugin: it has a content-type parser and an error handler of its own, because it speaks JSON-RPC. */
export async function mcp(app: FastifyInstance, options: McpOptions): Promise<void> {
  const {
    authenticate,
    onError,
    publicUrl,
    rateLimits,
    mcpOrigins = [],
    mcpSecret: secret,
    factoryOf = serverFactory,
  } = options;
  const parts = partsOf({ ...options, secret });
  // Requests that were refused are reported here, too; they were answered, and are not worth a line.
  const report = ({ name, stack }: Error) => !REFUSALS.has(name) && onError({ name, stack });
  const eras = new Eras({ ...options, factory: factoryOf(parts), parts, secret, onError: report });
  const serve = toNodeHandler(eras, { onerror: ({ name, stack }) => onError({ name, stack }) });
  const origins = [new URL(publicUrl).hostname, ...localhostAllowedOrigins(), ...mcpOrigins];
  // Only calls of tools are counted, where they are known, and credentials that are refused.
  const admit = admission(authenticate, rateLimits, 'refused');
  const readmit = readmission(authenticate);
  // Streams would keep the listener from closing.
  app.addHook('preClose', () => eras.close());
  readMessages(app);
  app.setErrorHandler(jsonRpcErrors(app.errorHandler));
  for (const url of MCP_PATHS) {
    const metadata = publicUrl + resourceMetadataPath(url);
    app.route({
      method: ['GET', 'POST', 'DELETE'],
      url,
      bodyLimit: BODY_MAX,
      exposeHeadRoute: false,
      onRequest: async (request, reply) => {
        // The specification of the transport asks for this against DNS rebinding; without an Origin nobody is refused.
        if (!validateOriginHeader(request.headers.origin, origins).ok) throw new ForeignOrigin();
        await admit(request, reply);
        if (url === '/mcp/secure' && !request.viewer)
          throw new ApiError('missing_credential', undefined, {
            headers: { 'www-authenticate': `Bearer realm="svc", resource_metadata="${metadata}"` },
          });
      },
      handler: async (request, reply) => {
        await readmit(request);
        const view = parts.lists.viewOf(request.query as Record<string, unknown>);
        for (const [name, value] of Object.entries(reply.getHeaders())) reply.raw.setHeader(name, value as string);
        reply.raw.removeHeader('content-type');
        reply.hijack();
        const auth = authOf(request, view, counter(rateLimits, request, reply));
        await serve(Object.assign(request.raw, { auth }), reply.raw, request.body);
      },
    });
  }
}

/** Whatever its type, a body is read as JSON; the SDK refuses other types. A body that is not there is none. */
function readMessages(app: FastifyInstance): void {
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
}

const authOf = ({ viewer, id, headers, ip }: FastifyRequest, view: View, count: Count) =>
  authInfoOf({ viewer, requestId: id, userAgent: headers['user-agent'] ?? null, address: ip, count, view });

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
      reply
        .code(status)
        .header('content-type', JSON_TYPE)
        .send(JSON.stringify(rpcErrorBody(code, message)));
    const { code } = error as { code?: string };
    if (error instanceof ForeignOrigin) answer(403, SERVER_ERROR, 'The Origin is not allowed.');
    else if (code === 'malformed_json') answer(400, PARSE_ERROR, 'Parse error: the body is not valid JSON.');
    else if (code === 'invalid_query') answer(400, SERVER_ERROR, error.message);
    else if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') answer(415, SERVER_ERROR, 'Send the body as application/json.');
    else if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') answer(400, SERVER_ERROR, 'The body is too large.');
    else otherwise(error, request, reply);
  };
}
