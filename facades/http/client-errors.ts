/** Requests that are no good HTTP. Most leave neither a request nor a reply, and are answered by hand. */
import { METHODS, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../../schema/index.ts';
import type { AnswerError } from './errors.ts';
import { API_HEADERS } from './headers.ts';

const KIB = 1024;
const HEADERS_MAX = 16 * KIB;
const TOO_LARGE = `The headers are larger than ${HEADERS_MAX / KIB} KiB.`;

/** @throws ApiError invalid_header if the address and the headers are too large together; the connection ends then */
export function refuseLargeHead({ raw }: FastifyRequest, reply: FastifyReply): void {
  const size = raw.rawHeaders.reduce((sum, { length }) => sum + length, raw.url!.length);
  if (size < HEADERS_MAX) return;
  reply.header('connection', 'close');
  throw new ApiError('invalid_header', TOO_LARGE);
}

type ClientError = Error & { code?: string; rawPacket?: unknown };
/** Node keeps the response that is due on a socket there, and asks it the same before its own answers to such errors. */
type ServerSocket = Socket & { _httpMessage?: ServerResponse | null };

const DETAILS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: TOO_LARGE,
  ERR_HTTP_REQUEST_TIMEOUT: 'The request took too long to arrive.',
};

/** Answers what Node could not read, and ends the connection. */
export function clientErrors(answerError: AnswerError, newRequestId: () => string) {
  return (error: ClientError, socket: ServerSocket) => {
    if (error.code === 'ECONNRESET' || socket.destroyed) return;
    const due = socket._httpMessage;
    // In the middle of another answer nothing can be said.
    if (socket.writable && !due?.headersSent) {
      const requestId = newRequestId();
      const detail = DETAILS[error.code ?? ''] ?? 'The request is not valid HTTP.';
      const { body } = answerError(new ApiError('invalid_header', detail), requestId);
      socket.write(answer(requestId, mayHaveBody(error, socket) ? JSON.stringify(body) : undefined));
    }
    socket.destroy(error);
  };
}

/** Without a body there is no Content-Length either: the end of the connection ends the answer. */
function answer(requestId: string, body: string | undefined): string {
  const headers = {
    ...API_HEADERS,
    'x-request-id': requestId,
    date: new Date().toUTCString(),
    connection: 'close',
    ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }),
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 400 Bad Request\r\n${lines.join('')}\r\n${body ?? ''}`;
}

/** Whether the request is certainly no HEAD, whose answers have no body (RFC 9110, section 9.3.2). */
function mayHaveBody({ rawPacket }: ClientError, { _httpMessage: due, bytesRead }: ServerSocket): boolean {
  if (due) return due.req.method !== 'HEAD';
  // Nothing is known of a head that never arrived as a whole.
  if (!Buffer.isBuffer(rawPacket)) return true;
  const [word = ''] = rawPacket.toString('latin1', 0, 32).trimStart().split(' ');
  if (METHODS.includes(word)) return word !== 'HEAD';
  // The packet begins within a request, unless it is the first of all.
  return bytesRead === rawPacket.length;
}
