/** Reverse DNS: names for the addresses of a server. */
import { BlockList, isIPv6, SocketAddress } from 'node:net';
import { ApiError, type FieldError } from '../../entities/errors.ts';
import type { Server } from '../../entities/servers/server.ts';

type Names = Server['reverseDns'];

/**
 * The names with their addresses in canonical form (RFC 5952).
 * @throws ApiError validation_failed for an address of another server, or a repeated one
 */
export function ownReverseDns({ ipv4, ipv6, ipv6Prefix }: Server, names: Names): Names {
  const own = new BlockList();
  if (ipv4) own.addAddress(ipv4, 'ipv4');
  if (ipv6) own.addAddress(ipv6, 'ipv6');
  const [network, length] = ipv6Prefix?.split('/') ?? [];
  if (network && length) own.addSubnet(network, Number(length), 'ipv6');
  const addresses = [ipv4, ipv6Prefix ?? ipv6].filter(Boolean).join(' and ') || 'none yet';
  const canonical = names.map(({ ip, ptr }) => ({ ip: canonicalAddress(ip), ptr: ptr.toLowerCase() }));
  const errors = canonical.flatMap(({ ip }, i): FieldError[] => {
    const field = `reverse_dns.${i}.ip`;
    if (!own.check(ip, isIPv6(ip) ? 'ipv6' : 'ipv4'))
      return [
        { field, code: 'not_allowed', message: `${field} is not an address of this server. It has ${addresses}.` },
      ];
    if (canonical.findIndex((other) => other.ip === ip) < i)
      return [{ field, code: 'not_unique', message: `${field} is a repeated address.` }];
    return [];
  });
  if (errors.length) throw new ApiError('validation_failed', errors[0]!.message, { errors });
  return canonical;
}

/** Maps an IPv4-mapped IPv6 address to its IPv4 address. */
const canonicalAddress = (ip: string) =>
  isIPv6(ip)
    ? new SocketAddress({ address: ip, family: 'ipv6' }).address.toLowerCase().replace(/^::ffff:(?=.*\.)/, '')
    : ip;
