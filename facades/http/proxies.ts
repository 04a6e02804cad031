/**
 * Watches whether the service sees its callers' addresses. Behind a proxy that the operator has not named, all callers have
 * one address. They share limits, and strangers can lock customers out. If Tor connects from the address of a proxy, strangers
 * claim any address. Addresses stay in memory and are in no warning.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { isCircuit, isOnionHost, networkCheck } from '../../schema/index.ts';

/** The requests of a single private address after which it counts as a proxy. */
const REQUESTS_MIN = 50;
/** Names of a developer's machine, and of onion services: Tor always calls from a private address. */
const LOCAL_NAME = /^(localhost|127\.[\d.]+|\[::1\])$|\.(localhost|onion)$/;
const isPrivate = networkCheck([
  ...['10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.168.0.0/16'],
  ...['::1/128', 'fc00::/7', 'fe80::/10'],
]);

const FORWARDED =
  'Requests carry X-Forwarded-For or Forwarded, but TRUSTED_PROXY_CIDRS does not name their sender. If your proxy sends them, all callers count as one address. Name the proxy there.';
const ONION =
  'Requests for an onion service come from an address in TRUSTED_PROXY_CIDRS, and without X-Forwarded-For. If Tor sends them, its visitors can claim any address by that header. Point Tor at ONION_LISTENER.';
const EVERYONE =
  'TRUSTED_PROXY_CIDRS trusts every address, so all callers can claim any address by X-Forwarded-For. Name only your proxies.';
const SINGLE =
  'All requests come from one private address, so all callers share their limits. Name your proxy in TRUSTED_PROXY_CIDRS.';

/** Returns a check for trusted proxies. A circuit of an onion service is a caller, and never a proxy. */
export function proxyCheck(trustedProxies: readonly string[]): (address: string | undefined) => boolean {
  const isNamed = networkCheck(trustedProxies);
  return (address = '') => isNamed(address) && !isCircuit(address);
}

export class ProxyWatch {
  readonly #trusts: ReturnType<typeof proxyCheck>;
  readonly #isPublic: boolean;
  readonly #onWarning: (warning: string) => void;
  /** The only peer so far; null: there were several, or a public one. */
  #peer: string | null | undefined;
  #requests = 0;
  #warning: string | null = null;

  /** @param onWarning called once for each warning */
  constructor(options: { publicUrl: string; trustedProxies: readonly string[]; onWarning: (warning: string) => void }) {
    this.#trusts = proxyCheck(options.trustedProxies);
    this.#isPublic = !LOCAL_NAME.test(new URL(options.publicUrl).hostname);
    this.#onWarning = options.onWarning;
    if (['0.0.0.0/0', '::/0'].some(networkCheck(options.trustedProxies))) this.#warn(EVERYONE);
  }

  /** The problem of the listener; null: none. */
  get warning(): string | null {
    return this.#warning;
  }

  see({ headers, socket }: Pick<IncomingMessage, 'headers' | 'socket'>): void {
    if (this.#warning === FORWARDED || this.#warning === ONION) return;
    const peer = socket.remoteAddress ?? '';
    if (isCircuit(peer)) return;
    if (this.#trusts(peer)) this.#seeTrusted(headers);
    else if (headers['x-forwarded-for'] !== undefined || headers.forwarded !== undefined) this.#warn(FORWARDED);
    else if (this.#isPublic && this.#peer !== null && !this.#warning) this.#count(peer);
  }

  #seeTrusted({ host = '', 'x-forwarded-for': forwarded }: IncomingHttpHeaders): void {
    this.#peer = null;
    // A stranger can name any host to a proxy. A proxy adds the header, and Tor does not.
    if (isOnionHost(host) && forwarded === undefined) this.#warn(ONION);
  }

  #count(peer: string): void {
    this.#peer ??= isPrivate(peer) ? peer : null;
    if (this.#peer !== peer) this.#peer = null;
    else if (++this.#requests >= REQUESTS_MIN) this.#warn(SINGLE);
  }

  #warn(warning: string): void {
    this.#warning = warning;
    this.#onWarning(warning);
  }
}
