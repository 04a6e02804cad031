/** Answers requests that are not valid HTTP. Fastify has no request or reply for most of them. */
import { METHODS, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../../schema/index.ts';
import type { ErrorResponder, ErrorResponse } from './errors.ts';
import { API_HEADERS } from './headers.ts';
import { lacksHost } from './pipelining.ts';

const KIB = 1024;
const HEADERS_MAX = 16 * KIB;
const HEADERS_COUNT_MAX = 100;
const TOO_MANY = `The request has more than ${HEADERS_COUNT_MAX} headers.`;
const TOO_LARGE = `The headers are larger than ${HEADERS_MAX / KIB} KiB.`;

/** Returns the fault of a head that HTTP refuses, or undefined. The connection of a large head closes. */
export function headFault({ raw }: FastifyRequest, reply: FastifyReply): ApiError | undefined {
  const size = raw.rawHeaders.reduce((sum, { length }) => sum + length, raw.url!.length);
  // A request keeps its head until its answer. Each header takes some memory besides its text.
  const isMany = raw.rawHeaders.length > 2 * HEADERS_COUNT_MAX;
  if (size >= HEADERS_MAX || isMany) {
    reply.header('connection', 'close');
    return new ApiError('invalid_header', isMany ? TOO_MANY : TOO_LARGE);
  }
  const { expect = '100-continue' } = raw.headers;
  if (lacksHost(raw)) return new ApiError('invalid_header', 'The header Host is missing.');
  if (/\b100-continue\b/i.test(expect)) return undefined;
  return new ApiError('invalid_header', 'The header Expect may only have the value 100-continue.');
}

type ClientError = Error & { code?: string; rawPacket?: unknown };
/** Node stores the socket's current response in `_httpMessage`, and checks it before its own error responses. */
type ServerSocket = Socket & { _httpMessage?: ServerResponse | null };

const DETAILS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: TOO_LARGE,
  ERR_HTTP_REQUEST_TIMEOUT: 'The request took too long to arrive.',
};

/** Answers requests that Node could not parse, and ends the connection. */
export function clientErrors(errorResponse: ErrorResponder, newRequestId: () => string) {
  return (error: ClientError, socket: ServerSocket) => {
    if (error.code === 'ECONNRESET' || socket.destroyed) return;
    // After the headers of another response, an error response would corrupt it.
    if (socket.writable && !socket._httpMessage?.headersSent) {
      const requestId = newRequestId();
      const detail = DETAILS[error.code ?? ''] ?? 'The request is not valid HTTP.';
      const response = errorResponse(new ApiError('invalid_header', detail), requestId);
      socket.write(rawResponse(response, requestId, mayHaveBody(error, socket)));
    }
    socket.destroy(error);
  };
}

/** The text of a response on a connection that closes after it. Without a body, it has no Content-Length. */
export function rawResponse({ status, headers: own, body: object }: ErrorResponse, requestId: string, hasBody = true) {
  const body = hasBody ? JSON.stringify(object) : undefined;
  const headers = {
    ...API_HEADERS,
    ...own,
    'x-request-id': requestId,
    date: new Date().toUTCString(),
    connection: 'close',
    ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }),
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body ?? ''}`;
}

/** Whether the response may have a body. Responses to HEAD have none (RFC 9110, section 9.3.2). */
function mayHaveBody({ rawPacket }: ClientError, { _httpMessage: response, bytesRead }: ServerSocket): boolean {
  if (response) return response.req.method !== 'HEAD';
  // The head did not arrive completely, so its method is unknown.
  if (!Buffer.isBuffer(rawPacket)) return true;
  const [method = ''] = rawPacket.toString('latin1', 0, 32).trimStart().split(' ');
  if (METHODS.includes(method)) return method !== 'HEAD';
  // Only the first packet of a connection is sure to begin with a method.
  return bytesRead === rawPacket.length;
}
