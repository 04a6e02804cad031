/** Specifications of machines of the tiny image. */
import { newOrderNumber } from '../../entities/ids.ts';
import type { MachineSpec } from '../../provisioning/servers/drivers/driver.ts';
import { macOf } from '../../provisioning/servers/placement/spec.ts';

let machines = 50;

/** A machine of a new order with an address of its own. */
export function newSpec(
  sshPublicKeys: readonly string[] = [],
  { network, gateway } = { network: '10.79.0', gateway: '10.79.0.1' },
): MachineSpec {
  const key = { order: newOrderNumber('SRV'), generation: 1 };
  return {
    ...key,
    kind: 'VPS',
    serviceCode: 'vps-1',
    region: 'zrh',
    image: 'debian-13',
    hostname: 'web',
    sshPublicKeys: [...sshPublicKeys],
    rootPassword: null,
    userData: null,
    size: { vcpus: 1, memoryMb: 128, diskGb: 1 },
    host: null,
    network: {
      mac: macOf(key),
      ipv4: { address: `${network}.${++machines}`, prefixLength: 24, gateway },
      ipv6: null,
      ipv6Prefix: null,
    },
  };
}
