/** Networks from which an API key may be used: addresses and CIDR blocks (RFC 4632, RFC 4291). */
import { BlockList, isIP } from 'node:net';

/** The network in the form `address/bits`, or undefined if it is none. An address alone is a network of one. */
export function networkFrom(text: string): string | undefined {
  const [address = '', bits, ...more] = text.trim().toLowerCase().split('/');
  const family = isIP(address);
  const most = family === 4 ? 32 : 128;
  if (!family || more.length || address.includes('%') || !/^\d{1,3}$/.test(bits ?? '0')) return undefined;
  const prefix = bits === undefined ? most : Number(bits);
  return prefix <= most ? `${address}/${prefix}` : undefined;
}

/** Whether an address lies in one of the networks; none are no restriction. */
export function networkCheck(networks: readonly string[]): (address: string | null) => boolean {
  if (!networks.length) return () => true;
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits] = network.split('/');
    list.addSubnet(address, Number(bits), isIP(address) === 4 ? 'ipv4' : 'ipv6');
  }
  return (address) => {
    // A socket that listens on :: shows IPv4 callers so.
    const plain = address?.replace(/^::ffff:(?=\d+\.)/i, '').split('%')[0] ?? '';
    const family = isIP(plain);
    return family !== 0 && list.check(plain, family === 4 ? 'ipv4' : 'ipv6');
  };
}
