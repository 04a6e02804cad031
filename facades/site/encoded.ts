/**
 * Sends texts that have no secrets, compressed if the caller wants that. Beside a secret, their length could tell it to an
 * attacker (BREACH). Each text is encoded once, because its compression costs a hundred times as much as a read.
 */
import { gzipSync } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import Negotiator from 'negotiator';
import { cached, etagOf } from '../http/rest.ts';

interface Encoded {
  plain: Buffer;
  zipped: Buffer;
  /** Weak, because the compressed bytes differ from the plain ones. */
  etag: string;
}

/** More than the pages of the site. */
const KEPT_MAX = 300;
const kept = new Map<string, Encoded>();

function encode(text: string): Encoded {
  let encoded = kept.get(text);
  if (!encoded) {
    const plain = Buffer.from(text);
    encoded = { plain, zipped: gzipSync(plain), etag: `W/${etagOf(plain)}` };
    if (kept.size >= KEPT_MAX) kept.delete(kept.keys().next().value!);
    kept.set(text, encoded);
  }
  return encoded;
}

/** Whether the caller prefers gzip (RFC 9110, section 12.5.3). */
const wantsGzip = (request: FastifyRequest): boolean =>
  new Negotiator(request).encoding(['gzip', 'identity']) === 'gzip';

/** Answers with a text that stays the same for many requests. */
export function sendEncoded(request: FastifyRequest, reply: FastifyReply, text: string, cacheControl: string) {
  const { plain, zipped, etag } = encode(text);
  const sent = cached(request, reply, wantsGzip(request) ? zipped : plain, cacheControl, etag);
  reply.header('vary', 'accept-encoding');
  return sent === zipped ? reply.header('content-encoding', 'gzip').send(zipped) : sent;
}
