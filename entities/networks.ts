/**
 * Networks: addresses and CIDR blocks (RFC 4632, RFC 4291). An IPv4-mapped address counts as its IPv4 address, so a network
 * has addresses of one family only.
 */
import { isIPv4, isIPv6 } from 'node:net';

/** The first 96 bits of an IPv4-mapped address: `::ffff:0:0/96`. */
const MAPPED = '0'.repeat(80) + '1'.repeat(16);

/**
 * Returns a network in its canonical form `address/bits`, or undefined for other text. An address is a network of one. A
 * block of IPv4-mapped addresses becomes its IPv4 block, and has none if it is wider than all of IPv4.
 */
export function networkFrom(text: string): string | undefined {
  const prefix = prefixOf(text);
  return prefix === undefined ? undefined : textOf(prefix);
}

/** Returns a check whether an address or a network is in one of the networks. Other text is in none. */
export function networkCheck(networks: readonly string[]): (address: string | null) => boolean {
  const around = networks.flatMap((network) => prefixOf(network) ?? []);
  return (address) => {
    const prefix = prefixOf(bareAddress(address ?? ''));
    return prefix !== undefined && around.some((one) => prefix.startsWith(one));
  };
}

/** Returns a check whether an allowlist allows an address or a network. An empty list allows all. */
export const allowedBy = (allowlist: readonly string[]): ((address: string | null) => boolean) =>
  allowlist.length ? networkCheck(allowlist) : () => true;

/** The network of all callers whose address cannot be read. */
const UNREADABLE = 'unreadable';

/** Returns the network that counts as one caller: an IPv4 address, a circuit, or the /64 of another IPv6 address. */
export const networkOf = (address: string): string => networkWithin(address, 64);

/**
 * Returns the network whose strangers take turns as one, and have limits together. It is like `networkOf`, but the /48 of
 * another IPv6 address. Providers give that much to one site (RFC 6177), which has 65,536 networks of /64 then.
 */
export const siteOf = (address: string): string => networkWithin(address, 48);

/** The site of a free account. Circuits are new in a second, so all of them are one. */
export const freeSiteOf = (address: string): string => (isCircuit(address) ? 'circuits' : siteOf(address));

function networkWithin(address: string, bits: number): string {
  const bare = bareAddress(address);
  if (isIPv4(bare)) return bare;
  const prefix = prefixOf(bare);
  if (prefix === undefined) return UNREADABLE;
  return textOf(isCircuit(bare) ? prefix : prefix.slice(0, 1 + bits)).replace(/\/(32|128)$/, '');
}

/** Removes the zone of an IPv6 address, and the port that some proxies add to X-Forwarded-For. */
const bareAddress = (address: string): string =>
  address.replace(/^\[(.*)\](:\d+)?$|^([\d.]+):\d+$/, '$1$3').split('%', 1)[0]!;

/** The family of a network (4 or 6) and its fixed bits. A network is in another if its text begins with the other's. */
function prefixOf(network: string): string | undefined {
  const [address = '', length, ...more] = network.trim().split('/');
  const bits = bitsOf(address);
  if (!bits || more.length || !/^\d{1,3}$/.test(length ?? '0')) return undefined;
  const fixed = length === undefined ? bits.length : Number(length);
  if (fixed > bits.length) return undefined;
  if (!bits.startsWith(MAPPED)) return (bits.length === 32 ? '4' : '6') + bits.slice(0, fixed);
  return fixed < MAPPED.length ? undefined : `4${bits.slice(MAPPED.length, fixed)}`;
}

function textOf(prefix: string): string {
  const fixed = prefix.slice(1);
  const [size, width] = prefix.startsWith('4') ? [32, 8] : [128, 16];
  const bits = fixed.padEnd(size, '0');
  const groups = Array.from({ length: size / width }, (_, i) =>
    Number.parseInt(bits.slice(i * width, (i + 1) * width), 2),
  );
  const address = size === 32 ? groups.join('.') : canonical(groups.map((group) => group.toString(16)).join(':'));
  return `${address}/${fixed.length}`;
}

/** The 32 or 128 bits of an address, or undefined for other text and for an address with a zone. */
function bitsOf(address: string): string | undefined {
  if (isIPv4(address)) return binary(address.split('.'), 10, 8);
  if (!isIPv6(address) || address.includes('%')) return undefined;
  const [head, tail] = canonical(address).split('::');
  const [before, after] = [head, tail].map((part) => (part ? part.split(':') : [])) as [string[], string[]];
  return binary([...before, ...Array<string>(8 - before.length - after.length).fill('0'), ...after], 16, 16);
}

const binary = (groups: string[], radix: number, width: number): string =>
  groups.map((group) => Number.parseInt(group, radix).toString(2).padStart(width, '0')).join('');

/** The shortest form of an IPv6 address (RFC 5952), all in hexadecimal. */
const canonical = (address: string): string => new URL(`http://[${address}]`).hostname.slice(1, -1);

/** Whether Tor names the caller: it gives each circuit of an onion service an address of this network. */
export const isCircuit = networkCheck(['fc00:dead:beef:4dad::/64']);

/** Whether a host, as the header Host has it, is an onion service. */
export const isOnionHost = (host: string): boolean => /\.onion\.?(:\d+)?$/i.test(host);
