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
import { type Log, scrubbed } from '../http/errors.ts';
import { JSON_TYPE } from '../http/headers.ts';
import { deeperThan, readUtf8 } from '../http/json.ts';
import { resourceMetadataPath } from '../http/oauth.ts';
import { admission, type RateLimits, rateHeaders, readmission, refuseDenied } from '../rate-limit/rate-limit.ts';
import { authInfoOf, type Count, type View } from './caller.ts';
import { type McpParts, partsOf } from './parts.ts';
import { ProtocolVersions } from './protocol-versions.ts';
import { rpcErrorBody, SERVER_ERROR } from './rpc.ts';
import { serverFactory } from './server.ts';
import type { ToolOptions } from './tools.ts';

export interface McpOptions extends ToolOptions {
  /** Without a trailing slash. */
  publicUrl: string;
  /** Host names of further origins from which browsers may call. The service's own and localhost always may. */
  mcpOrigins?: string[];
  /** Signs sessions and questions. At least 32 bytes; the same in every process. */
  mcpSecret: Buffer;
  onCredentialEnd: OnCredentialEnd;
  /** Receives faults, without any input value. */
  onError: Log;
  /** Absent: there are no limits. */
  rateLimits?: RateLimits;
  /** Makes the MCP servers. Conformance tests replace the default. */
  factoryOf?: (parts: McpParts) => McpServerFactory;
}

/** /mcp also serves callers without a credential. /mcp/secure answers them 401, which makes OAuth clients fetch a token. */
export const MCP_PATHS = ['/mcp', '/mcp/secure'] as const;
const REFUSALS: ReadonlySet<string> = new Set(['Error', 'ProtocolError']);
const BODY_MAX = 256 * 1024;
/** Arguments may have ten levels, like bodies. The message around them adds a few. */
const DEPTH_MAX = 16;

/** A Fastify plugin with a content-type parser and an error handler of its own, for JSON-RPC. */
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
  // The SDK also reports refused requests. They have their answer, and need no line in the log.
  const report = (error: Error) => !REFUSALS.has(error.name) && onError(scrubbed(error));
  const versions = new ProtocolVersions({ ...options, factory: factoryOf(parts), parts, secret, onError: report });
  const serve = toNodeHandler(versions, { onerror: (error) => onError(scrubbed(error)) });
  const origins = [new URL(publicUrl).hostname, ...localhostAllowedOrigins(), ...mcpOrigins];
  // The listener counts refused credentials. Each tool counts its own calls.
  const admit = admission(authenticate, rateLimits, 'refused');
  const readmit = readmission(authenticate);
  // Open streams would keep the listener from closing.
  app.addHook('preClose', () => versions.close());
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
        // The transport's specification requires this check against DNS rebinding. Requests without an Origin pass.
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

/** Reads every body as JSON, because the SDK refuses other content types itself. Fastify finds a named type faster. */
function readMessages(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    ['application/json', '*'],
    { parseAs: 'buffer', bodyLimit: BODY_MAX },
    (_request, body: Buffer, done) => {
      try {
        const message = body.length ? JSON.parse(readUtf8(body)) : undefined;
        if (deeperThan(message, DEPTH_MAX)) throw new ApiError('malformed_json');
        done(null, message);
      } catch {
        done(new ApiError('malformed_json'), undefined);
      }
    },
  );
}

const authOf = ({ viewer, id, headers, ip }: FastifyRequest, view: View, count: Count) =>
  authInfoOf({ viewer, requestId: id, userAgent: headers['user-agent'] ?? null, address: ip, count, view });

/** Counts calls, and sets the rate headers unless they were sent before. */
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

/** Answers errors before a JSON-RPC message as JSON-RPC errors. Refused credentials get the format of REST (RFC 6750). */
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
