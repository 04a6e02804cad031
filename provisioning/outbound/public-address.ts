/**
 * The addresses to which a customer's URL may lead: public ones, and those that the operator allows. The WHATWG parser reads
 * URLs first, so each spelling of an address (decimal, octal, hexadecimal, full-width) becomes the same text.
 */
import { isIP } from 'node:net';
import { networkCheck } from '../../entities/networks.ts';

/** IPv4 networks that are not public (IANA's special-purpose registry), and 168.63.129.16, the platform address of Azure. */
const DENIED_IPV4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
];
/** Only global unicast IPv6 is public, without Teredo, documentation, 6to4, SRv6 and AS112. */
const GLOBAL_IPV6 = '2000::/3';
const DENIED_IPV6 = ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20'];
/** Names without public addresses (RFC 6761, 6762, 7686, 8375, 9476). */
const SPECIAL_NAME = /(^|\.)(localhost|local|internal|home\.arpa|onion|test|invalid|example|alt)$/i;
const URL_CHARACTERS_MAX = 2048;
/** Of the ports that system services have, only those of the web. So no URL speaks to a mail server or a database. */
const isPort = ({ port }: URL) => ['', '80', '443'].includes(port) || Number(port) > 1023;

export type UrlProblem = 'invalid_url' | 'url_not_allowed';

/** A URL that Freehold must not call, or whose name has an address that Freehold must not call. */
export class RefusedUrl extends Error {
  readonly code: UrlProblem;
  constructor(code: UrlProblem, message: string) {
    super(message);
    this.code = code;
  }
}

const isDenied = networkCheck([...DENIED_IPV4, ...DENIED_IPV6]);
const isGlobal6 = networkCheck([GLOBAL_IPV6]);

const ADDRESSES_MAX = 16;

export class AddressRules {
  readonly #allows: ReturnType<typeof networkCheck>;
  readonly #excludes: ReturnType<typeof networkCheck>;
  /**
   * @param allowCidrs networks that are allowed although they are not public, even without TLS
   * @param denyCidrs networks that are never allowed, such as the operator's own public ones
   */
  constructor(allowCidrs: readonly string[] = [], denyCidrs: readonly string[] = []) {
    this.#allows = networkCheck(allowCidrs);
    this.#excludes = networkCheck(denyCidrs);
  }

  /** Whether the operator allows the address explicitly. */
  allowed(address: string): boolean {
    return !this.#excludes(address) && this.#allows(address);
  }

  permitted(address: string): boolean {
    if (this.#excludes(address)) return false;
    return this.#allows(address) || (!isDenied(address) && (isIP(address) === 4 || isGlobal6(address)));
  }

  /**
   * Checks a URL without a resolver: its form, and a literal address. `checkAddresses` checks the addresses of a name after
   * each resolution.
   * @throws RefusedUrl
   */
  parse(text: string): URL {
    const url = text.length <= URL_CHARACTERS_MAX ? URL.parse(text) : null;
    if (!url || !['https:', 'http:'].includes(url.protocol) || url.href.length > URL_CHARACTERS_MAX)
      throw new RefusedUrl('invalid_url', `Give an https URL of up to ${URL_CHARACTERS_MAX} characters.`);
    if (url.username || url.password) throw new RefusedUrl('invalid_url', 'The URL must not have a user or password.');
    if (!isPort(url)) throw new RefusedUrl('url_not_allowed', 'The port of the URL must be 80, 443 or above 1023.');
    url.hash = '';
    const host = hostOf(url);
    if (isIP(host)) this.checkAddresses(url, [host]);
    return url;
  }

  /**
   * Checks the first addresses of a URL's host, because a name can have thousands. One refused address refuses the URL. The
   * connection uses the first one.
   * @throws RefusedUrl
   */
  checkAddresses(url: URL, all: readonly string[]): void {
    const name = hostOf(url);
    const addresses = all.slice(0, ADDRESSES_MAX);
    const inside = addresses.length > 0 && addresses.every((address) => this.allowed(address));
    const special = !isIP(name) && (!name.includes('.') || SPECIAL_NAME.test(name));
    if (!inside && (special || !addresses.every((address) => this.permitted(address))))
      throw new RefusedUrl('url_not_allowed', 'The URL must lead to a public address.');
    if (!inside && url.protocol !== 'https:') throw new RefusedUrl('invalid_url', 'The URL must begin with https.');
  }
}

/** Returns the host of a URL, without the brackets of IPv6 and the final dot of an absolute name. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
