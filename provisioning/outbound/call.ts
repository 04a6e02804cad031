/**
 * One HTTP request to a customer's URL, in a thread of its own. It follows no redirect, reuses no connection and decompresses
 * nothing. It resolves the name once and connects only to a checked address. So a second answer of the nameserver cannot
 * redirect it.
 */
import { Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeOutsideCall } from '../../entities/database/request-transaction.ts';
import { type AddressRules, hostOf, RefusedUrl } from './public-address.ts';
import { type Answer, OutboundThread, type SendingError } from './thread.ts';

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
  /** The account for which the service calls. The accounts share the time of the thread. */
  account: string;
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
 * are all `unreachable`.
 */
export type CallError = 'refused_address' | 'dns' | SendingError;

const thread = new OutboundThread();

/**
 * Returns failures of the network or the server as results. Each call to an unreachable port takes equally long. So customers
 * do not learn which ports of others are open, even by the order of their own calls.
 * @throws if the caller aborts it
 */
export async function call(request: Call, outbound: Outbound): Promise<Answer | CallError> {
  beforeOutsideCall();
  const { url, timeoutSeconds, aborted } = request;
  const endsAt = performance.now() + timeoutSeconds * 1000;
  const leftMs = () => Math.max(0, Math.ceil(endsAt - performance.now()));
  const target = await targetOf(url, outbound, leftMs(), aborted);
  const result =
    typeof target === 'string'
      ? target
      : await thread.send({ ...fieldsOf(request), ...target, limitMs: leftMs() }, aborted);
  if (result === 'unreachable') await sleep(leftMs(), undefined, { signal: aborted });
  return result;
}

/** A signal cannot go to a thread. */
const fieldsOf = ({ method, account, headers, body, answerBytesMax }: Call) => ({
  ...{ method, account, headers, body, answerBytesMax },
});

/** Returns the URL as the parser read it, and a checked address of its host. @throws if the caller aborts it */
async function targetOf(
  text: string,
  { rules, resolve }: Outbound,
  limitMs: number,
  aborted?: AbortSignal,
): Promise<{ url: string; address: string } | CallError> {
  const late = new AbortController();
  try {
    const url = rules.parse(text);
    const name = hostOf(url);
    if (isIP(name)) return { url: url.href, address: name };
    const signal = aborted ? AbortSignal.any([late.signal, aborted]) : late.signal;
    const addresses = await Promise.race([resolve(name), sleep(limitMs, undefined, { signal })]);
    if (!addresses) return 'unreachable';
    rules.checkAddresses(url, addresses);
    const [address] = addresses;
    return address ? { url: url.href, address } : 'dns';
  } catch (error) {
    aborted?.throwIfAborted();
    return error instanceof RefusedUrl ? 'refused_address' : 'dns';
  } finally {
    late.abort();
  }
}

/** Checks the addresses of a URL's host, if its name resolves now. @throws RefusedUrl */
export async function checkNow(url: URL, { rules, resolve }: Outbound): Promise<void> {
  beforeOutsideCall();
  const name = hostOf(url);
  if (isIP(name)) return;
  // Each call checks a name that does not resolve yet.
  rules.checkAddresses(url, await resolve(name).catch(() => []));
}
