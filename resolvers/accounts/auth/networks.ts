/** Networks of callers: addresses and CIDR blocks (RFC 4632, RFC 4291). */
import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net';

/** Returns a network in the form `address/bits`, or undefined for other text. An address is a network of one. */
export function networkFrom(text: string): string | undefined {
  const [address = '', bits, ...more] = text.trim().toLowerCase().split('/');
  const family = isIP(address);
  const most = family === 4 ? 32 : 128;
  if (!family || more.length || address.includes('%') || !/^\d{1,3}$/.test(bits ?? '0')) return undefined;
  const prefix = bits === undefined ? most : Number(bits);
  return prefix <= most ? `${address}/${prefix}` : undefined;
}

/** Returns a check of addresses. Without networks, the check allows every address. */
export function networkCheck(networks: readonly string[]): (address: string | null) => boolean {
  if (!networks.length) return () => true;
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits] = network.split('/');
    list.addSubnet(address, Number(bits), isIP(address) === 4 ? 'ipv4' : 'ipv6');
  }
  return (address) => {
    // A socket that listens on :: shows IPv4 callers in this form.
    const plain = address?.replace(/^::ffff:(?=\d+\.)/i, '').split('%')[0] ?? '';
    const family = isIP(plain);
    return family !== 0 && list.check(plain, family === 4 ? 'ipv4' : 'ipv6');
  };
}

/** Whether all addresses of a network `address/bits` are in one of the networks. Without networks, every address is. */
export function isWithin(network: string, networks: readonly string[]): boolean {
  const [address = '', bits] = network.split('/');
  const around = networks.filter((one) => Number(one.split('/')[1]) <= Number(bits));
  return !networks.length || (around.length > 0 && networkCheck(around)(address));
}

/** Whether Tor names the caller: it gives each circuit of an onion service an address of this network. */
export const isCircuit = networkCheck(['fc00:dead:beef:4dad::/64']);

/** Whether a host, as the header Host has it, is an onion service. */
export const isOnionHost = (host: string): boolean => /\.onion\.?(:\d+)?$/i.test(host);

/** Returns the network that counts as one caller: an IPv4 address, a circuit, or the /64 of another IPv6 address. */
export function networkOf(address: string): string {
  const bare = address.split('%')[0]!.toLowerCase();
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(bare)?.[1];
  if (mapped && isIPv4(mapped)) return mapped;
  if (!isIPv6(bare)) return bare;
  const [head = '', tail] = bare.split('::');
  const groups = head ? head.split(':') : [];
  const after = tail ? tail.replace(/\d+\.\d+\.\d+\.\d+$/, '0:0').split(':') : [];
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - after.length);
  const all = [...groups, ...Array<string>(zeros).fill('0'), ...after];
  const plain = all.map((group) => Number.parseInt(group, 16).toString(16));
  return isCircuit(bare) ? plain.join(':') : `${plain.slice(0, 4).join(':')}::/64`;
}
