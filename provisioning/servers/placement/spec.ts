/** The specification of a machine for its driver: the ordered server, the size of its tier, and its network. */
import { createHash } from 'node:crypto';
import { LIMITED_MBPS } from '../../../entities/accounts/abuse-case.ts';
import type { DedicatedDetails, VpsDetails } from '../../../entities/catalog.ts';
import type { Queryable } from '../../../entities/database/transaction.ts';
import { READ_SPEC } from '../../../entities/servers/lock.ts';
import type { Server } from '../../../entities/servers/server.ts';
import type {
  MachineAddress,
  MachineKey,
  MachineSize,
  MachineSpec,
  MachineTraits,
  Observation,
} from '../drivers/driver.ts';

/** The key of the machine that a server has now. */
export const keyOf = ({ orderNumber, generation }: Server): MachineKey => ({ order: orderNumber, generation });

/** @param opened the secrets of the server in plain text */
export async function specOf(
  db: Queryable,
  server: Server,
  opened: Pick<MachineSpec, 'rootPassword' | 'userData'>,
): Promise<MachineSpec> {
  const key = keyOf(server);
  const { details, isLimited, networks } = (await READ_SPEC.first(db, [server.orderNumber, server.serviceCode]))!;
  const addressOf = (family: 'IPV4' | 'IPV6', address: string | null): MachineAddress | null => {
    if (!address) return null;
    const network = networks.find((one) => one.family === family);
    const whole = family === 'IPV4' ? 32 : 64;
    return { address, prefixLength: network?.prefixLength ?? whole, gateway: network?.gateway ?? null };
  };
  return {
    ...key,
    kind: server.kind,
    serviceCode: server.serviceCode,
    region: server.region,
    image: server.os,
    hostname: server.hostname,
    sshPublicKeys: server.sshPublicKeys,
    ...opened,
    size: sizeOf(details),
    ...('vcpus' in details && { traits: traitsOf(details, isLimited) }),
    host: server.host,
    network: {
      mac: macOf(key),
      ipv4: addressOf('IPV4', server.ipv4),
      ipv6: addressOf('IPV6', server.ipv6),
      ipv6Prefix: server.ipv6Prefix,
    },
  };
}

/** The size of a tier. */
export const sizeOf = (details: VpsDetails | DedicatedDetails): MachineSize =>
  'vcpus' in details
    ? { vcpus: details.vcpus, memoryMb: details.memoryMb, diskGb: details.diskGb }
    : {
        vcpus: details.threads,
        memoryMb: details.memoryMb,
        diskGb: details.disks.reduce((sum, { count, sizeGb }) => sum + count * sizeGb, 0),
      };

const traitsOf = ({ virtualization, nesting = false, portMbps }: VpsDetails, isLimited: boolean): MachineTraits => ({
  virtualization: virtualization === 'kvm' ? 'kvm' : 'container',
  nesting,
  portMbps: isLimited ? LIMITED_MBPS : portMbps,
});

/** 40 bits of a hash, behind the octet of locally administered addresses (IEEE 802, U/L and I/G bits). */
export const macOf = ({ order, generation }: MachineKey): string =>
  `02:${createHash('sha256').update(`${order}:${generation}`).digest('hex').slice(0, 10).match(/../g)!.join(':')}`;

const SIZES = ['vcpus', 'memoryMb', 'diskGb'] as const satisfies (keyof MachineSize)[];
/** Whether a machine has another size than the wanted one, as far as it is known. */
export const sizeDiffers = (wanted: Pick<MachineSpec, 'size'>, { size }: Pick<Observation, 'size'>): boolean =>
  size !== undefined && SIZES.some((name) => size[name] !== wanted.size[name]);
/** Whether a machine was made from another image than the wanted one, as far as it is known. */
export const imageDiffers = (wanted: Pick<MachineSpec, 'image'>, { image }: Pick<Observation, 'image'>): boolean =>
  image !== undefined && image !== wanted.image;
