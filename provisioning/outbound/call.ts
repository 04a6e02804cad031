/**
 * One HTTP request to a URL that a customer gave. Follows no redirect, reuses no connection, and connects only to the very
 * addresses that were checked: there is no second resolution that could answer otherwise. Nothing is decompressed.
 */
import { Resolver } from 'node:dns/promises';
import { type ClientRequest, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { type AddressRules, hostOf, RefusedUrl } from './public-address.ts';

/** All addresses of a name. @throws with the code of node:dns */
export type Resolve = (name: string) => Promise<string[]>;

const RESOLVE_MS = 2000;

/** Asks the nameservers itself: getaddrinfo would hold the threads that check passwords. */
export const resolveName: Resolve = async (name) => {
  const resolver = new Resolver({ timeout: RESOLVE_MS, tries: 2 });
  const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
  const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  if (!addresses.length) throw (answers[0] as PromiseRejectedResult).reason;
  return addresses;
};

/** Where calls may lead, and how names are found. */
export interface Outbound {
  rules: AddressRules;
  resolve: Resolve;
}

export interface Call {
  method: 'GET' | 'POST';
  url: string;
  headers: Record<string, string>;
  body?: string;
  /** What comes after it is not read. */
  answerBytesMax: number;
  /** For all of it: the name, the connection, and the last byte of the answer. */
  timeoutSeconds: number;
  /** Aborted when nobody waits for the result any more. */
  aborted?: AbortSignal | undefined;
}

/** Why there is no answer. Of what the network says nothing else is told. */
export type CallError = 'refused_address' | 'dns' | 'tls' | 'connection' | 'timeout';

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
  /** Whether the body came to its end within its limit. */
  complete: boolean;
}

/** Never throws for what the network or the other side does. @throws if it was aborted from outside */
export async function call(request: Call, outbound: Outbound): Promise<Answer | CallError> {
  const timeout = AbortSignal.timeout(request.timeoutSeconds * 1000);
  const signal = request.aborted ? AbortSignal.any([timeout, request.aborted]) : timeout;
  try {
    return await exchange(outbound.rules.parse(request.url), request, outbound, signal);
  } catch (error) {
    if (request.aborted?.aborted) throw error;
    return timeout.aborted ? 'timeout' : reasonOf(error);
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
      agent: false,
      lookup: checkedLookup(url, outbound),
      maxHeaderSize: 8192,
      signal,
      headers: {
        ...headers,
        ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }),
        connection: 'close',
      },
    });
    checkPeer(request, url, outbound.rules);
    request.on('error', fail).on('response', (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      const finish = (complete: boolean) => {
        response.destroy();
        done({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks), complete });
      };
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

/** The connection goes to what this answers. A literal address is never looked up: `parse` has checked it. */
function checkedLookup(url: URL, { rules, resolve }: Outbound): LookupFunction {
  return (name, { all }, answer) => {
    resolve(name.replace(/\.$/, '')).then(
      (addresses) => {
        try {
          rules.checkAddresses(url, addresses);
        } catch (error) {
          return answer(error as Error, []);
        }
        const found = addresses.map((address) => ({ address, family: isIP(address) }));
        if (all) answer(null, found);
        else answer(null, found[0]!.address, found[0]!.family);
      },
      (error) => answer(Object.assign(error as NodeJS.ErrnoException, { syscall: 'dns' }), []),
    );
  };
}

/** What should not be possible any more is looked at once more, before a byte is sent. */
function checkPeer(request: ClientRequest, url: URL, rules: AddressRules): void {
  request.on('socket', (socket) =>
    socket.once('connect', () => {
      try {
        rules.checkAddresses(url, [socket.remoteAddress ?? '']);
      } catch (error) {
        request.destroy(error as Error);
      }
    }),
  );
}

function reasonOf(error: unknown): CallError {
  if (error instanceof RefusedUrl) return 'refused_address';
  const { code = '', syscall } = error as NodeJS.ErrnoException;
  if (syscall === 'dns') return 'dns';
  return /CERT|^ERR_TLS|^ERR_SSL|^EPROTO$|SELF_SIGNED|UNABLE_TO/.test(code) ? 'tls' : 'connection';
}

/** Whether a host can be reached at all, as far as that can be told now. @throws RefusedUrl */
export async function checkNow(url: URL, { rules, resolve }: Outbound): Promise<void> {
  const name = hostOf(url);
  if (isIP(name)) return;
  // A name that nobody knows yet is checked when it is called.
  rules.checkAddresses(url, await resolve(name).catch(() => []));
}
