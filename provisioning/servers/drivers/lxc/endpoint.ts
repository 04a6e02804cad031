/** An endpoint of an engine's REST API, and requests to it. */
import { X509Certificate } from 'node:crypto';
import { type ClientRequest, request as httpRequest, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { PeerCertificate } from 'node:tls';
import { DriverError } from '../driver.ts';

/** Milliseconds that an endpoint has to accept a connection. */
const CONNECT_MS = 3000;

/** The most bytes of an answer, which are parsed in one go. The state of a thousand machines has a few MB. */
export const ANSWER_BYTES_MAX = 16 * 2 ** 20;

/** A Unix socket, or HTTPS with a client certificate and a pinned server certificate. */
export type Endpoint = { socketPath: string } | { host: string; port: number; tls: Tls };

/** PEM. */
export interface Tls {
  certificate: string;
  key: string;
  /** The certificate of the server, or of the cluster, which all members use. */
  serverCertificate: string;
}

/** @param text `unix:/path` or `https://host:8443` */
export function endpointOf(text: string, tls: Tls | undefined): Endpoint {
  if (text.startsWith('unix:')) return { socketPath: text.slice('unix:'.length) };
  const { hostname, port } = new URL(text);
  if (!tls) throw new Error(`${text} needs certificates.`);
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 443), tls };
}

/** The SHA-256 of our certificate in hex; undefined for a socket. @throws Error if it is no certificate */
export const fingerprintOf = (endpoint: Endpoint): string | undefined =>
  'tls' in endpoint
    ? new X509Certificate(endpoint.tls.certificate).fingerprint256.replaceAll(':', '').toLowerCase()
    : undefined;

/** An answer of the engine (LXD and Incus, `rest-api.md`). */
export interface Answer {
  type: 'sync' | 'async' | 'error';
  metadata: unknown;
  /** The path of an asynchronous operation; clusters add a query. */
  operation?: string;
  error?: string;
  error_code?: number;
}

/** The endpoint gave no answer. */
export class NoAnswer extends Error {
  /** Whether the engine may have received the request, and acted on it. */
  readonly sent: boolean;
  constructor(message: string, sent: boolean) {
    super(message);
    this.sent = sent;
  }
}

/** The answer is longer than the caller takes. Another endpoint would answer the same. */
export class TooLong extends DriverError {
  constructor() {
    super('unreachable', 'The answer is too long.');
  }
}

/** Bytes that come as they are read, and the headers about them. */
export class Upload {
  readonly bytes: Readable;
  readonly headers: Record<string, string>;
  constructor(bytes: Readable, headers: Record<string, string>) {
    this.bytes = bytes;
    this.headers = headers;
  }
}

export interface Request {
  method: string;
  path: string;
  /** An object becomes JSON. */
  body?: object | Upload | undefined;
  /** Milliseconds that the endpoint can be silent. */
  silentMs: number;
  /** The most bytes of the answer. Default: ANSWER_BYTES_MAX. */
  bytesMax?: number | undefined;
  signal: AbortSignal;
}

/** @throws NoAnswer; TooLong; or the reason of the signal */
export function send(
  endpoint: Endpoint,
  { method, path, body, silentMs, bytesMax = ANSWER_BYTES_MAX, signal }: Request,
): Promise<Answer> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    let sent = false;
    const options: RequestOptions = {
      method,
      path,
      // Engines close connections when their listeners change.
      agent: false,
      signal,
      timeout: silentMs,
      headers: headersOf(body),
    };
    const request = open(endpoint, options);
    const fail = (error: unknown) =>
      reject(
        signal.aborted
          ? signal.reason
          : error instanceof TooLong
            ? error
            : new NoAnswer(error instanceof Error ? error.message : `${error}`, sent),
      );
    const patience = setTimeout(() => request.destroy(new Error('The endpoint accepts no connection.')), CONNECT_MS);
    request.on('socket', (socket) =>
      socket.once('socketPath' in endpoint ? 'connect' : 'secureConnect', () => {
        clearTimeout(patience);
        sent = true;
      }),
    );
    request.on('timeout', () => request.destroy(new Error('The endpoint sends nothing.')));
    // Without a listener, Node closes the connection and sends no event. The next bytes may be no TLS.
    request.on('upgrade', (_, socket) => {
      socket.on('error', () => {}).destroy();
      fail(new Error('The server changed the protocol.'));
    });
    request.on('error', fail).on('close', () => clearTimeout(patience));
    request.on('response', async (response) => {
      try {
        const chunks: Buffer[] = [];
        let bytes = 0;
        for await (const chunk of response) {
          chunks.push(chunk as Buffer);
          bytes += (chunk as Buffer).length;
          if (bytes > bytesMax) throw new TooLong();
        }
        resolve(JSON.parse(Buffer.concat(chunks).toString()) as Answer);
        if (body instanceof Upload) request.destroy();
      } catch (error) {
        fail(error);
      }
    });
    if (body instanceof Upload) {
      // An engine that refuses the upload answers before it takes a byte.
      request.on('continue', () => pipeline(body.bytes, request).catch(fail));
      request.flushHeaders();
    } else request.end(body && JSON.stringify(body));
  });
}

function headersOf(body: Request['body']): Record<string, string> {
  if (body instanceof Upload)
    return { ...body.headers, 'content-type': 'application/octet-stream', expect: '100-continue' };
  return body ? { 'content-type': 'application/json' } : {};
}

function open(endpoint: Endpoint, options: RequestOptions): ClientRequest {
  if ('socketPath' in endpoint) return httpRequest({ ...options, socketPath: endpoint.socketPath });
  const { host, port, tls } = endpoint;
  return httpsRequest({
    ...options,
    host,
    port,
    cert: tls.certificate,
    key: tls.key,
    ca: tls.serverCertificate,
    // The certificate is self-signed and names no host. The check of the chain has proved that it is the pinned one.
    checkServerIdentity: (_host: string, _peer: PeerCertificate) => undefined,
  });
}
