/**
 * Which addresses a customer's URL may lead to: public ones, and those that the operator allows. URLs are read by the
 * WHATWG parser first, so that every spelling of an address (decimal, octal, hexadecimal, full-width) is one here.
 */
import { BlockList, isIP } from 'node:net';

/** IPv4 that is not public (IANA's special-purpose registry), and 168.63.129.16, which is a host's own in Azure. */
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
/** Of IPv6 only global unicast is public, without Teredo, documentation, 6to4, SRv6 and AS112. */
const GLOBAL_IPV6 = '2000::/3';
const DENIED_IPV6 = ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20'];
/** Names that no public address has (RFC 6761, 6762, 7686, 8375, 9476). */
const SPECIAL_NAME = /(^|\.)(localhost|local|internal|home\.arpa|onion|test|invalid|example|alt)$/i;
const URL_CHARACTERS_MAX = 2048;

export type UrlProblem = 'invalid_url' | 'url_not_allowed';

/** A URL, or an address that a name has, that must not be called. */
export class RefusedUrl extends Error {
  readonly code: UrlProblem;
  constructor(code: UrlProblem, message: string) {
    super(message);
    this.code = code;
  }
}

const blockList = (cidrs: readonly string[]): BlockList => {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [address, bits] = cidr.split('/') as [string, string];
    list.addSubnet(address, Number(bits), familyOf(address));
  }
  return list;
};
const familyOf = (address: string) => (isIP(address) === 6 ? 'ipv6' : 'ipv4');
const denied = blockList([...DENIED_IPV4, ...DENIED_IPV6]);
const global6 = blockList([GLOBAL_IPV6]);

export class AddressRules {
  readonly #allowed: BlockList;
  /** @param allowCidrs networks that may be called although they are not public, also without TLS */
  constructor(allowCidrs: readonly string[] = []) {
    this.#allowed = blockList(allowCidrs);
  }

  /** Whether the operator allows the address explicitly. */
  allowed(address: string): boolean {
    return isIP(address) > 0 && this.#allowed.check(address, familyOf(address));
  }

  permitted(address: string): boolean {
    if (this.allowed(address)) return true;
    if (isIP(address) === 4) return !denied.check(address, 'ipv4');
    return isIP(address) === 6 && global6.check(address, 'ipv6') && !denied.check(address, 'ipv6');
  }

  /**
   * Checks a URL as far as that goes without a resolver: the form, and the address if it names one. The name of a host
   * is checked by `checkAddresses`, each time it is resolved.
   * @throws RefusedUrl
   */
  parse(text: string): URL {
    const url = text.length <= URL_CHARACTERS_MAX ? URL.parse(text) : null;
    if (!url || !['https:', 'http:'].includes(url.protocol) || url.href.length > URL_CHARACTERS_MAX)
      throw new RefusedUrl('invalid_url', `Give an https URL of up to ${URL_CHARACTERS_MAX} characters.`);
    if (url.username || url.password) throw new RefusedUrl('invalid_url', 'The URL must not have a user or password.');
    url.hash = '';
    const host = hostOf(url);
    if (isIP(host)) this.checkAddresses(url, [host]);
    return url;
  }

  /**
   * Checks what a URL's host resolves to. One bad address condemns all of them: nobody chooses among them later.
   * @throws RefusedUrl
   */
  checkAddresses(url: URL, addresses: readonly string[]): void {
    const name = hostOf(url);
    const inside = addresses.length > 0 && addresses.every((address) => this.allowed(address));
    const special = !isIP(name) && (!name.includes('.') || SPECIAL_NAME.test(name));
    if (!inside && (special || !addresses.every((address) => this.permitted(address))))
      throw new RefusedUrl('url_not_allowed', 'The URL must lead to a public address.');
    if (!inside && url.protocol !== 'https:') throw new RefusedUrl('invalid_url', 'The URL must begin with https.');
  }
}

/** The host of a URL, without the brackets of IPv6 and the dot that ends an absolute name. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
