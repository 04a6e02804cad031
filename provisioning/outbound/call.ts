/**
 * One HTTP request to a customer's URL. It follows no redirect, reuses no connection and decompresses nothing. It resolves
 * the name once and connects only to the checked addresses. So a second answer of the nameserver cannot redirect it.
 */
import { Resolver } from 'node:dns/promises';
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeOutsideCall } from '../../entities/database/request-transaction.ts';
import { connectTo } from './connection.ts';
import { type AddressRules, hostOf, RefusedUrl } from './public-address.ts';

/** Returns all addresses of a name. @throws an error with the code of node:dns */
export type Resolve = (name: string) => Promise<string[]>;

const RESOLVE_MS = 2000;

/** Asks the nameservers directly: getaddrinfo would block the threads that check passwords. */
export const resolveName: Resolve = async (name) => {
  const resolver = new Resolver({ timeout: RESOLVE_MS, tries: 2 });
  const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
  const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  if (!addresses.length) throw (answers[0] as PromiseRejectedResult).reason;
  return addresses;
};

/** The rules for addresses, and the resolver of names. */
export interface Outbound {
  rules: AddressRules;
  resolve: Resolve;
}

export interface Call {
  method: 'GET' | 'POST';
  url: string;
  headers: Record<string, string>;
  body?: string;
  /** The call reads no more bytes of the answer. */
  answerBytesMax: number;
  /** The limit for the whole call: resolution, connection and answer. */
  timeoutSeconds: number;
  /** Aborts when the result is no longer needed. */
  aborted?: AbortSignal | undefined;
}

/**
 * Why the call has no answer. The caller gets no other detail of the network. A closed port, another protocol and silence
 * are all `unreachable`. `tls` means that a TLS server showed an invalid certificate.
 */
export type CallError = 'refused_address' | 'dns' | 'tls' | 'unreachable';

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
  /** Whether the whole body came within the limit. */
  complete: boolean;
}

/**
 * Returns failures of the network or the server as results. Each call to an unreachable port takes equally long. So customers
 * do not learn which ports of others are open, even by the order of their own calls.
 * @throws if the caller aborts it
 */
export async function call(request: Call, outbound: Outbound): Promise<Answer | CallError> {
  beforeOutsideCall();
  const startedAt = performance.now();
  const limitMs = request.timeoutSeconds * 1000;
  const timeout = AbortSignal.timeout(limitMs);
  const signal = request.aborted ? AbortSignal.any([timeout, request.aborted]) : timeout;
  try {
    return await exchange(outbound.rules.parse(request.url), request, outbound, signal);
  } catch (error) {
    if (request.aborted?.aborted) throw error;
    const reason = timeout.aborted ? 'unreachable' : reasonOf(error);
    const leftMs = Math.max(0, limitMs - (performance.now() - startedAt));
    if (reason === 'unreachable') await sleep(leftMs, undefined, { signal: request.aborted });
    return reason;
  }
}

function exchange(
  url: URL,
  { method, headers, body, answerBytesMax }: Call,
  outbound: Outbound,
  signal: AbortSignal,
): Promise<Answer> {
  return new Promise((done, fail) => {
    const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, {
      method,
      createConnection: () => connectTo(url, checkedLookup(url, outbound), answerBytesMax, outbound.rules),
      maxHeaderSize: 8192,
      signal,
      headers: {
        ...headers,
        ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }),
        connection: 'close',
      },
    });
    // Without a listener, Node closes the connection and sends no event. The next bytes may be no TLS.
    request.on('upgrade', (_, socket) => {
      socket.on('error', () => {}).destroy();
      fail(new Error('The server changed the protocol.'));
    });
    // No answer may hold a call beyond its limit.
    let end = () => fail(signal.reason);
    signal.addEventListener('abort', () => end(), { once: true });
    request.on('error', fail).on('response', (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      const finish = (complete: boolean) => {
        response.destroy();
        done({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks), complete });
      };
      end = () => finish(false);
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > answerBytesMax) finish(false);
        else chunks.push(chunk);
      });
      response.on('end', () => finish(true)).on('error', () => finish(false));
    });
    request.end(body);
  });
}

/** Returns the lookup that checks each address before the connection. `parse` has checked literal addresses. */
function checkedLookup(url: URL, { rules, resolve }: Outbound): LookupFunction {
  return (name, _, answer) => {
    resolve(name.replace(/\.$/, '')).then(
      (addresses) => {
        try {
          rules.checkAddresses(url, addresses);
        } catch (error) {
          return answer(error as Error, []);
        }
        answer(null, addresses[0]!, isIP(addresses[0]!));
      },
      (error) => answer(Object.assign(error as NodeJS.ErrnoException, { syscall: 'dns' }), []),
    );
  };
}

function reasonOf(error: unknown): CallError {
  if (error instanceof RefusedUrl) return 'refused_address';
  const { code = '', syscall } = error as NodeJS.ErrnoException;
  if (syscall === 'dns') return 'dns';
  return /CERT|^ERR_TLS|SELF_SIGNED|UNABLE_TO/.test(code) ? 'tls' : 'unreachable';
}

/** Checks the addresses of a URL's host, if its name resolves now. @throws RefusedUrl */
export async function checkNow(url: URL, { rules, resolve }: Outbound): Promise<void> {
  beforeOutsideCall();
  const name = hostOf(url);
  if (isIP(name)) return;
  // Each call checks a name that does not resolve yet.
  rules.checkAddresses(url, await resolve(name).catch(() => []));
}
