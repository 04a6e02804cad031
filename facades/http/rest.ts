/** The REST facade: a route for each operation with `@http`. */
import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError, type FieldError, type Span, type Viewer } from '../../schema/index.ts';
import { checker, refusal } from '../compile/details.ts';
import { inputSchema, parameterSchema } from '../compile/json-schema.ts';
import { type CredentialUse, changeOf, dependsOnViewer, type Operation } from '../compile/operation.ts';
import { type Parameter, readsCredential } from '../compile/parameters.ts';
import { type Caller, type ContextOf, noSuch, permit, type Refuse, runner, type Values } from '../compile/run.ts';
import { FORM_TYPE, readForm, STYLES } from '../compile/styles.ts';
import { CSV_TYPE, csvFormat, wantsCsv } from '../formats/csv.ts';
import { LINES, LINES_TYPE, type LinesOptions, linesStreamer, wantsLines } from '../formats/json-lines.ts';
import { qrCode, qrFormatFor } from '../formats/qr.ts';
import { RECEIPT_CSP, RECEIPT_TYPE, receiptPage, wantsPage } from '../formats/receipt.ts';
import type { Admit } from '../rate-limit/admission.ts';
import { readingAtTurn } from '../rate-limit/turns.ts';
import { disconnectOf } from './connections.ts';
import { keyOf, type Once, REPLAYED_HEADER, runnerOnce, takesKey } from './idempotency.ts';
import { type AuditRequest, bodyReader, parameterReader } from './requests.ts';

export interface RestOptions extends LinesOptions {
  operations: readonly Operation[];
  admit: Admit;
  readmit: (request: FastifyRequest, use?: CredentialUse) => Promise<void>;
  contextOf: ContextOf;
  /** Absent: idempotency keys have no effect. */
  once?: Once | undefined;
  auditRequest?: AuditRequest;
}

declare module 'fastify' {
  interface FastifyRequest {
    viewer: Viewer | null;
    /** When it came, by performance.now(). */
    startedAt: number;
    /** Its span, for an operator who traces. */
    span: Span | null;
  }
  interface FastifyContextConfig {
    /** The name of the operation of the route. */
    operation?: string;
  }
}

interface Streamer {
  streamLines: ReturnType<typeof linesStreamer>;
}

/** Adds the routes. The instance must have the decorator `request.viewer`. */
export function rest(app: FastifyInstance, given: RestOptions): void {
  const options = { ...given, streamLines: linesStreamer(given) };
  const takesForms = ({ http }: Operation) => http !== undefined && STYLES[http.style].forms;
  serve(app, options, (operation) => !takesForms(operation));
  app.register(async (inner) => {
    inner.addContentTypeParser(FORM_TYPE, { parseAs: 'buffer' }, readingAtTurn(readForm));
    serve(inner, options, takesForms);
  });
}

function serve(
  app: FastifyInstance,
  { operations, admit, readmit, contextOf, once, auditRequest, streamLines }: RestOptions & Streamer,
  chosen: (operation: Operation) => boolean,
): void {
  for (const operation of operations.filter(chosen)) {
    if (!operation.http) continue;
    const { method, path, maxAgeSeconds, style, qr, lines, csv, receipt } = operation.http;
    const table = csv && csvFormat(csv);
    const { success } = STYLES[style];
    const run = runnerOnce(operation, runner(operation, refuser(operation)), once);
    const keyed = takesKey(operation);
    const valuesOf = parameterReader(operation);
    const bodyOf = bodyReader(operation);
    const cacheControl = maxAgeSeconds && `public, max-age=${maxAgeSeconds}`;
    app.route({
      method,
      url: path.replace(/\{(\w+)\}/g, ':$1'),
      onRequest: guard(operation, admit),
      config: { operation: operation.name },
      ...(operation.kind === 'mutation' && {
        preHandler: async (request) => {
          await readmit(request, credentialUse(operation));
          permit(operation, request.viewer);
        },
      }),
      ...(auditRequest &&
        operation.kind === 'mutation' && {
          // Fastify does not run onResponse after the caller has disconnected.
          onSend: async ({ viewer, id: requestId }, { statusCode: status }) =>
            auditRequest({ viewer, requestId }, { method, path, status }),
        }),
      handler: async (request, reply) => {
        const values = valuesOf(request);
        const key = keyed ? keyOf(request.headers['idempotency-key']) : undefined;
        const context = contextOf(callerOf(request, reply));
        const { accept } = request.headers;
        const isTable = table !== undefined && wantsCsv(accept);
        if (isTable || (lines && wantsLines(accept))) {
          const read = async (page: Values) => (await run(undefined, page, undefined, context)).answer;
          const signal = AbortSignal.any([context.signal, context.stopping]);
          const stream = await streamLines(request, reply.raw, values, read, signal, isTable ? table : LINES);
          return reply
            .header('content-type', isTable ? `${CSV_TYPE}; charset=utf-8; header=present` : LINES_TYPE)
            .send(stream);
        }
        const { answer: text, replayed } = await run(key, values, bodyOf(request), context);
        if (replayed) reply.header(REPLAYED_HEADER, 'true');
        reply.code(success);
        if (receipt && wantsPage(accept))
          return reply
            .header('content-type', `${RECEIPT_TYPE}; charset=utf-8`)
            .header('content-security-policy', RECEIPT_CSP)
            .send(receiptPage(text));
        const format = qr && qrFormatFor(accept);
        if (format) return reply.header('content-type', format.contentType).send(await qrCode(format, text, qr));
        return cacheControl ? cached(request, reply, text, cacheControl, etagOf(text)) : text;
      },
    });
  }
}

/** A refresh ends the credential that its caller may send again. OAuth's own endpoints read the header themselves. */
function credentialUse(operation: Operation): CredentialUse {
  const readsIt = operation.parameters.some(readsCredential);
  if (operation.kind !== 'mutation') return readsIt ? 'unread' : 'checked';
  return operation.name === REFRESH || (readsIt && !dependsOnViewer(operation)) ? 'optional' : 'checked';
}
const REFRESH = 'RefreshTokens';

/** Checks the credential, the rate limits and the scope before the listener reads any input. */
function guard(operation: Operation, admit: Admit) {
  const { http, kind, scopes, urgent } = operation;
  // A stranger can do nothing by other paths, so those share a count.
  const call = {
    kind: kind === 'mutation' && !scopes.length ? http!.path : undefined,
    urgent,
    change: changeOf(operation),
  };
  const use = credentialUse(operation);
  return async (request: FastifyRequest, reply: FastifyReply) => {
    await admit(request, reply, use, call);
    permit(operation, request.viewer);
    if (http!.status === 'PLANNED') throw new ApiError('endpoint_planned');
  };
}

export function callerOf(request: FastifyRequest, reply: FastifyReply): Caller {
  const userAgent = request.headers['user-agent'] ?? null;
  const setHeader = (name: string, value: string) => void reply.header(name, value);
  return {
    viewer: request.viewer,
    requestId: request.id,
    userAgent,
    address: request.ip,
    host: request.headers.host,
    signal: disconnectOf(reply.raw),
    setHeader,
  };
}

/** The ETag of a content. */
export const etagOf = (content: string | Buffer): string =>
  `"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`;

/** Adds an ETag to a cacheable response, and answers 304 if the caller already has it (RFC 9110, section 13). */
export function cached(
  request: FastifyRequest,
  reply: FastifyReply,
  content: string | Buffer,
  cacheControl: string,
  etag: string,
) {
  reply.header('cache-control', cacheControl).header('etag', etag);
  const ifNoneMatch = request.headers['if-none-match'];
  if (ifNoneMatch === undefined || !(ifNoneMatch === '*' || ifNoneMatch.includes(etag))) return content;
  return reply.code(304).removeHeader('content-type').send();
}

/** Makes the error of an input: 404 for the path, 400 for the query and headers, 422 for the body. */
function refuser(operation: Operation): Refuse {
  const { parameters, input, http } = operation;
  const { refusal: code } = STYLES[http!.style];
  const checks = parameters.map((parameter) => ({ parameter, check: parameterChecker(parameter) }));
  const checkBody = input && checker(inputSchema(input.type));
  const errorsIn = (location: Parameter['in'], values: Values) =>
    checks.flatMap(({ parameter, check }) => (parameter.in === location ? check(values[parameter.variable]) : []));
  const locationOf = ({ field }: FieldError) =>
    parameters.find(({ name }) => name === field.split('.')[0])?.in ?? 'body';
  return (values, body, fallback) => {
    const errors = {
      path: errorsIn('path', values),
      query: errorsIn('query', values),
      header: errorsIn('header', values),
      body: checkBody?.(body ?? {}) ?? [],
    };
    if (!Object.values(errors).some(({ length }) => length))
      for (const error of fallback()) errors[locationOf(error)].push(error);
    if (code) return refusal(Object.values(errors).flat(), code);
    if (errors.path.length) return noSuch(operation, values);
    // A list in a query has no numbers: `status=a,b`.
    const query = errors.query.map((error) => ({
      ...error,
      field: error.field.replace(/\.\d+$/, ''),
      message: error.message.replace(/^(\w+)\.\d+ /, '$1 '),
    }));
    if (query.length) return refusal(query, 'invalid_query');
    return errors.header.length ? refusal(errors.header, 'invalid_header') : refusal(errors.body);
  };
}

function parameterChecker(parameter: Parameter): (value: unknown) => FieldError[] {
  const field = parameter.header ?? parameter.name;
  const check = checker(parameterSchema(parameter), field);
  return (value) => {
    if (value !== undefined) return check(value);
    return parameter.required ? [{ field, code: 'required', message: `${field} is required.` }] : [];
  };
}
