/**
 * The listener for machines in the provisioning network, and for their controllers, in plain HTTP, which firmware speaks:
 *
 *   GET  /boot                       The script that DHCP names. It loads the next one.
 *   GET  /boot/:mac                  The script of that machine (iPXE).
 *   GET  /files/:name                Kernel, initrd and images that SHA256SUMS names.
 *   GET  /d/:id/:token/job.cpio      The job of that machine, with the seed of its new system.
 *   GET  /d/:id/:token/boot.iso      The same, within the image that its controller presents as a medium.
 *   POST /d/:id/:proof/:news         A report of the machine.
 *
 * Anyone in that network reaches it without a credential. It logs no requests, since their paths contain tokens.
 */
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError, atTurnOfAddress } from '../../schema/index.ts';
import type { ConnectionOptions } from '../http/connections.ts';
import { guardedApp } from '../http/guarded-app.ts';
import { declaredBytes } from '../http/request-bodies.ts';
import { type Content, sendContent } from './content.ts';
import { Questions } from './questions.ts';

/** The part of provisioning that answers machines. */
interface Boots {
  /** The script of the machine with that MAC address. Undefined: it is no MAC address. */
  script(mac: string, base: string): Promise<string | undefined>;
  /** A file that machines may have. */
  file(name: string): Promise<Content | undefined>;
  /** The job of a deployment, for the holder of its token. */
  job(id: string, token: string, base: string): Promise<Content | undefined>;
  /** The medium with that job. */
  medium(id: string, token: string, base: string): Promise<Content | undefined>;
  /** Takes a report. @returns whether it is from that machine, and complete */
  tell(id: string, proof: string, news: string, text: string): Promise<boolean>;
}

export interface NetbootOptions {
  boots: Boots;
  /** Receives internal errors. */
  onError: (fault: unknown) => void;
}

const KIB = 1024;
const HEADERS_MAX = 16 * KIB;
/** A report has a line for each disk. */
const REPORT_MAX = 16 * KIB;
/** The time without a byte after which a connection closes. */
const SILENT_MS = 60_000;
/** A download takes longer than a shutdown may, but a report gets its answer. */
const SHUTDOWN_GRACE_MS = 1_000;
/** The most connections, of one address and of all. */
const [OF_ADDRESS_MAX, TOTAL_MAX] = [16, 256];

const refusal = new ApiError('rate_limited');
const connections: ConnectionOptions = {
  isProxy: () => false,
  // All addresses of the network may be in one /64.
  limitsOf: (address) => [
    { group: address, max: OF_ADDRESS_MAX, refusal },
    { group: 'all', max: TOTAL_MAX, refusal, givesWay: 'crowd' as const },
  ],
  refusalText: () => 'HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n',
};

/** Builds the listener. It does not listen yet. */
export function netbootListener({ boots, onError }: NetbootOptions): FastifyInstance {
  const questions = new Questions();
  const { app } = guardedApp({
    bodyLimit: REPORT_MAX,
    maxHeaderSize: HEADERS_MAX,
    connectionTimeout: SILENT_MS,
    shutdownGraceMs: SHUTDOWN_GRACE_MS,
    connections,
    frameworkErrors: (_error, _request, reply: FastifyReply) =>
      void reply.code(404).header('connection', 'close').send(),
    clientErrorHandler: (_error, socket) => void socket.destroy(),
    onRequest: ({ raw }, reply, done) => {
      const status = questions.areMany(addressOf(raw)) ? 429 : refusalOf(raw);
      if (status) return void reply.code(status).send();
      done();
    },
  });
  app.addHook('onSend', ({ raw }, reply, _payload, done) => {
    // Firmware sends its next request over another connection.
    reply.header('connection', 'close');
    if (!raw.url!.startsWith('/files/')) reply.header('cache-control', 'no-store');
    done();
  });
  app.setNotFoundHandler((_request, reply) => reply.code(404).send());
  app.setErrorHandler((error: Error & { statusCode?: number }, _request, reply) => {
    const status = error instanceof ApiError ? 503 : (error.statusCode ?? 500);
    // A machine that is turned off is no error.
    if (status === 500 && !reply.raw.destroyed) onError(error);
    return reply.code(status).send();
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
  routes(app, boots, questions);
  return app;
}

interface Given {
  Params: { mac: string; name: string; id: string; token: string; news: string };
}

function routes(app: FastifyInstance, boots: Boots, questions: Questions): void {
  /** Asks the database at the turn of the address, because all addresses of the network may be in one /64. */
  const atTurn = <T>({ raw }: FastifyRequest, ask: () => Promise<T>): Promise<T> => {
    questions.count(addressOf(raw));
    return atTurnOfAddress(addressOf(raw), ask);
  };
  const reading = { method: ['GET', 'HEAD'] };
  app.route({
    ...{ ...reading, url: '/boot' },
    handler: (request, reply) =>
      reply.type(TEXT).send(`#!ipxe\nchain --replace ${baseOf(request)}/boot/\${netX/mac:hexhyp}\n`),
  });
  app.route<Given>({
    ...{ ...reading, url: '/boot/:mac' },
    handler: async (request, reply) => {
      const script = await atTurn(request, () => boots.script(request.params.mac, baseOf(request)));
      return script === undefined ? reply.code(404).send() : reply.type(TEXT).send(script);
    },
  });
  app.route<Given>({
    ...{ ...reading, url: '/files/:name' },
    handler: async (request, reply) => sendContent(request, reply, await boots.file(request.params.name)),
  });
  for (const [name, take] of [
    ['job.cpio', boots.job],
    ['boot.iso', boots.medium],
  ] as const)
    app.route<Given>({
      ...{ ...reading, url: `/d/:id/:token/${name}` },
      handler: async (request, reply) => {
        const { id, token } = request.params;
        return sendContent(request, reply, await atTurn(request, () => take(id, token, baseOf(request))));
      },
    });
  app.post<Given>('/d/:id/:token/:news', async (request, reply) => {
    const { id, token, news } = request.params;
    const text = String(request.body ?? '');
    return reply.code((await atTurn(request, () => boots.tell(id, token, news, text))) ? 204 : 404).send();
  });
}

const TEXT = 'text/plain; charset=utf-8';

/** The URL of the listener, as the machine reaches it. */
const baseOf = ({ headers }: FastifyRequest): string => `http://${headers.host}`;

const addressOf = ({ socket }: IncomingMessage): string => socket.remoteAddress ?? '';

/** The status of a refusal by the head of a request. Undefined: it may have an answer. */
function refusalOf(request: IncomingMessage): number | undefined {
  const { method = '', headers } = request;
  if (!/^[\w.:[\]-]+$/.test(headers.host ?? '')) return 400;
  if (!/^(100-continue)?$/i.test(headers.expect ?? '')) return 417;
  if (method !== 'GET' && method !== 'HEAD' && method !== 'POST') return 405;
  // Only reports have a body, and tell its length.
  return declaredBytes(request) > (method === 'POST' ? REPORT_MAX : 0) ? 413 : undefined;
}
