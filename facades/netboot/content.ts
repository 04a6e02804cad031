/** Sends files, also in ranges (RFC 9110), which controllers and boot loaders read. */
import type { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';

export interface Content {
  size: number;
  /** Reads the bytes from the first to the one before the end. */
  read(first: number, end: number): Readable | Buffer;
}

/** Sends the content, or the range of it that the request wants. Without content, answers 404. */
export function sendContent(
  { method, headers }: FastifyRequest,
  reply: FastifyReply,
  content: Content | undefined,
): FastifyReply {
  if (!content) return reply.code(404).send();
  const { size } = content;
  const wanted = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? '');
  const first = wanted ? Number(wanted[1]) : 0;
  const end = wanted?.[2] ? Math.min(Number(wanted[2]) + 1, size) : size;
  if (wanted && first >= end) return reply.code(416).header('content-range', `bytes */${size}`).send();
  reply
    .type('application/octet-stream')
    .header('accept-ranges', 'bytes')
    .header('content-length', end - first);
  if (wanted) reply.code(206).header('content-range', `bytes ${first}-${end - 1}/${size}`);
  return method === 'HEAD' ? reply.send() : reply.send(content.read(first, end));
}
