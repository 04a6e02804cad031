/** The limits of a machine on its host, by its tier. The network card has the limit of the network. */
import type { MachineSize, MachineSpec, MachineTraits } from '../driver.ts';

/** Of a tier that tells nothing. */
export const TRAITS: MachineTraits = { virtualization: 'container', nesting: false, portMbps: 1000 };
/** Threads count as processes. With 4 a MiB their stacks in the kernel fit into the memory of the machine. */
const PROCESSES_PER_MIB = 4;
/** Megabytes a second that a machine reads from its disk, and as many that it writes. */
const DISK_MBYTES_PER_VCPU = 100;

/** The limits that a resize changes. */
export const limitsOf = ({ size, traits = TRAITS }: MachineSpec): Record<string, string> => ({
  'limits.cpu': String(size.vcpus),
  'limits.memory': `${size.memoryMb}MiB`,
  // The kernel of a virtual machine counts its own processes.
  ...(traits.virtualization === 'container' && { 'limits.processes': String(size.memoryMb * PROCESSES_PER_MIB) }),
});

/**
 * The state of a virtual machine comes from its host. Root in it may replace the agent, which could make up counters, or keep
 * the engine waiting.
 */
export const HOST_COUNTERS = { 'security.agent.metrics': 'false' };

/** A container has user ids of its own. So a process that leaves it cannot read the files of others. */
export const securityOf = ({ traits = TRAITS }: MachineSpec): Record<string, string> =>
  traits.virtualization === 'kvm'
    ? // Most images are not signed.
      { 'security.secureboot': 'false', ...HOST_COUNTERS }
    : { 'security.idmap.isolated': 'true', 'security.nesting': String(traits.nesting) };

export const ROOT = 'root';

/** The root disk. */
export function rootOf({ diskGb, vcpus }: MachineSize, pool: string): Record<string, string> {
  const rate = `${DISK_MBYTES_PER_VCPU * vcpus}MB`;
  return { type: 'disk', path: '/', pool, size: `${diskGb}GiB`, 'limits.read': rate, 'limits.write': rate };
}
