/**
 * One POST to a customer's URL. Follows no redirect, reuses no connection, and connects only to the very addresses that
 * were checked: there is no second resolution that could answer otherwise. The answer of the receiver goes no further
 * than its status and Retry-After.
 */
import { Resolver } from 'node:dns/promises';
import { type ClientRequest, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { type AddressRules, hostOf, RefusedUrl } from './public-address.ts';

/** Why a delivery did not succeed. Of what the network or the receiver says nothing else is told. */
export type DeliveryError = 'refused_address' | 'dns' | 'tls' | 'connection' | 'timeout' | 'http_status' | 'disabled';

export interface Posted {
  responseStatus: number | null;
  /** Seconds that the receiver asks to wait (RFC 9110, 10.2.3). */
  retryAfterSeconds: number | null;
  durationMs: number;
  /** Null if the answer was 2xx. */
  error: DeliveryError | null;
}

/** All addresses of a name. @throws with the code of node:dns */
export type Resolve = (name: string) => Promise<string[]>;

/** Much more than a receiver has to say; the rest is not read. */
const ANSWER_BYTES_MAX = 4096;
const RESOLVE_MS = 2000;

/** Asks the nameservers itself: getaddrinfo would hold the threads that check passwords. */
export const resolveName: Resolve = async (name) => {
  const resolver = new Resolver({ timeout: RESOLVE_MS, tries: 2 });
  const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
  const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  if (!addresses.length) throw (answers[0] as PromiseRejectedResult).reason;
  return addresses;
};

export interface Message {
  url: string;
  headers: Record<string, string>;
  body: string;
}
export interface PostOptions {
  rules: AddressRules;
  resolve: Resolve;
  timeoutSeconds: number;
  /** Aborted when nobody waits for the result any more. */
  aborted?: AbortSignal | undefined;
}

/** Never throws for what the network or the receiver does. @throws if it was aborted from outside */
export async function post(
  message: Message,
  { rules, resolve, timeoutSeconds, aborted }: PostOptions,
): Promise<Posted> {
  const startedAt = performance.now();
  const timeout = AbortSignal.timeout(timeoutSeconds * 1000);
  const signal = aborted ? AbortSignal.any([timeout, aborted]) : timeout;
  const told = { responseStatus: null, retryAfterSeconds: null, error: null };
  let result: Omit<Posted, 'durationMs'>;
  try {
    const answer = await exchange(rules.parse(message.url), message, { rules, resolve, signal });
    const ok = answer.responseStatus! >= 200 && answer.responseStatus! < 300;
    result = { ...told, ...answer, error: ok ? null : 'http_status' };
  } catch (error) {
    if (aborted?.aborted) throw error;
    result = { ...told, error: timeout.aborted ? 'timeout' : reasonOf(error) };
  }
  return { ...result, durationMs: Math.round(performance.now() - startedAt) };
}

type Answer = Pick<Posted, 'responseStatus' | 'retryAfterSeconds'>;
interface Exchange {
  rules: AddressRules;
  resolve: Resolve;
  signal: AbortSignal;
}

function exchange(url: URL, { headers, body }: Message, { rules, resolve, signal }: Exchange): Promise<Answer> {
  return new Promise((done, fail) => {
    const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, {
      method: 'POST',
      agent: false,
      lookup: checkedLookup(url, rules, resolve),
      maxHeaderSize: 8192,
      signal,
      headers: { ...headers, 'content-length': Buffer.byteLength(body), connection: 'close' },
    });
    checkPeer(request, url, rules);
    request.on('error', fail).on('response', (response) => {
      const { statusCode, headers: answered } = response;
      const finish = () => {
        response.destroy();
        done({ responseStatus: statusCode!, retryAfterSeconds: secondsOf(answered['retry-after']) });
      };
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > ANSWER_BYTES_MAX) finish();
      });
      response.on('end', finish).on('error', finish);
    });
    request.end(body);
  });
}

/** The connection goes to what this answers. A literal address is never looked up: `parse` has checked it. */
function checkedLookup(url: URL, rules: AddressRules, resolve: Resolve): LookupFunction {
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

function reasonOf(error: unknown): DeliveryError {
  if (error instanceof RefusedUrl) return 'refused_address';
  const { code = '', syscall } = error as NodeJS.ErrnoException;
  if (syscall === 'dns') return 'dns';
  return /CERT|^ERR_TLS|^ERR_SSL|^EPROTO$|SELF_SIGNED|UNABLE_TO/.test(code) ? 'tls' : 'connection';
}

/** Seconds, or a date. */
function secondsOf(retryAfter: string | undefined): number | null {
  if (!retryAfter) return null;
  if (/^\d{1,9}$/.test(retryAfter)) return Number(retryAfter);
  const at = Date.parse(retryAfter);
  return Number.isNaN(at) ? null : Math.max(0, (at - Date.now()) / 1000);
}

/** Whether a host can be reached at all, as far as that can be told now. @throws RefusedUrl */
export async function checkNow(url: URL, rules: AddressRules, resolve: Resolve): Promise<void> {
  const name = hostOf(url);
  if (isIP(name)) return;
  // A name that nobody knows yet is checked when it is called.
  rules.checkAddresses(url, await resolve(name).catch(() => []));
}
