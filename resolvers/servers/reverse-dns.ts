/** Names of addresses: only those of the server itself can be given one. */
import { BlockList, isIPv6, SocketAddress } from 'node:net';
import { ApiError, type FieldError } from '../../entities/errors.ts';
import type { Server } from '../../entities/servers/server.ts';

type Names = Server['reverseDns'];

/**
 * The names with their addresses in canonical form (RFC 5952).
 * @throws ApiError validation_failed for an address of somebody else, or one that stands there twice
 */
export function ownReverseDns({ ipv4, ipv6, ipv6Prefix }: Server, names: Names): Names {
  const own = new BlockList();
  if (ipv4) own.addAddress(ipv4, 'ipv4');
  if (ipv6) own.addAddress(ipv6, 'ipv6');
  const [network, length] = ipv6Prefix?.split('/') ?? [];
  if (network && length) own.addSubnet(network, Number(length), 'ipv6');
  const canonical = names.map(({ ip, ptr }) => ({ ip: canonicalAddress(ip), ptr: ptr.toLowerCase() }));
  const errors = canonical.flatMap(({ ip }, i): FieldError[] => {
    const field = `reverse_dns.${i}.ip`;
    if (!own.check(ip, isIPv6(ip) ? 'ipv6' : 'ipv4'))
      return [{ field, code: 'not_allowed', message: `${field} is no address of this server.` }];
    if (canonical.findIndex((other) => other.ip === ip) < i)
      return [{ field, code: 'not_unique', message: `${field} stands there twice.` }];
    return [];
  });
  if (errors.length) throw new ApiError('validation_failed', errors[0]!.message, { errors });
  return canonical;
}

/** IPv4 in the clothes of IPv6 is IPv4. */
const canonicalAddress = (ip: string) =>
  isIPv6(ip)
    ? new SocketAddress({ address: ip, family: 'ipv6' }).address.toLowerCase().replace(/^::ffff:(?=.*\.)/, '')
    : ip;
