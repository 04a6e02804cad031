/** How a machine is told to the engine, and read from it. What the engine does not know is kept in `user.freehold-*`. */
import { createHash } from 'node:crypto';
import type { MachineKey, MachineSize, MachineSpec, Observation, Power } from '../driver.ts';
import { networkConfigOf, userDataOf } from './cloud-init.ts';

/** An instance as the engine shows it. */
export interface Instance {
  name: string;
  /** `Running`, `Stopped`, …; `Error` if the member that it is on does not answer. */
  status: string;
  /** The member that it is on; `none` outside of clusters. */
  location: string;
  /** Without those of profiles. Missing where the engine itself could not ask. */
  config?: Record<string, string>;
  devices?: Record<string, Record<string, string>>;
}

export const MARK = {
  order: 'user.freehold-order',
  generation: 'user.freehold-generation',
  /** What it was made from. */
  spec: 'user.freehold-spec',
  /** Set when it has been made and started: an engine that dies on the way leaves what looks like an instance. */
  ready: 'user.freehold-ready',
  /** The last change, and for a restart the process that the instance had before. */
  change: 'user.freehold-change',
  before: 'user.freehold-change-before',
  /** Where proof is looked for. */
  address: 'user.freehold-address',
  /** Cannot be removed; its network is taken from it. */
  stuck: 'user.freehold-stuck',
} as const;

export const NIC = 'eth0';
export const ROOT = 'root';

/** Order numbers have one case, so nothing is lost. */
export const nameOf = ({ order, generation }: MachineKey): string => `${order.toLowerCase()}-${generation}`;

/** The machine that an instance is; undefined for what is not ours. */
export function keyOf({ name, status, config }: Instance): MachineKey | undefined {
  const order = config?.[MARK.order];
  if (order) return { order, generation: Number(config[MARK.generation]) };
  // Of a member that does not answer there is only the name.
  const [, named, generation] = (status === 'Error' && !config?.[MARK.order] && /^(srv-\w+)-(\d+)$/.exec(name)) || [];
  return named ? { order: named.toUpperCase(), generation: Number(generation) } : undefined;
}

/** The password is left out: what the engine keeps shall not help to guess it. The host may be changed by hand. */
export function digestOf({ rootPassword: _, host: __, ...spec }: MachineSpec): string {
  return createHash('sha256').update(JSON.stringify(spec)).digest('hex').slice(0, 32);
}

/** The network of the engine that machines are in. */
export interface Network {
  name: string;
  /** By the engine, which then also runs DHCP there; else a bridge of the host. */
  managed: boolean;
  /** Whether machines may have IPv6 addresses in it. */
  ipv6: boolean;
}

export interface Place {
  network: Network;
  pool: string;
  nameservers: readonly string[];
}

export function configOf(spec: MachineSpec, { network, nameservers }: Place): Record<string, string> {
  const { ipv4, ipv6 } = spec.network;
  const given = network.ipv6 ? spec.network : { ...spec.network, ipv6: null };
  return {
    ...limitsOf(spec.size),
    'cloud-init.user-data': userDataOf(spec),
    'cloud-init.network-config': networkConfigOf(given, nameservers),
    [MARK.order]: spec.order,
    [MARK.generation]: String(spec.generation),
    [MARK.spec]: digestOf(spec),
    [MARK.address]: ipv4?.address ?? ipv6?.address ?? '',
  };
}

export const limitsOf = ({ vcpus, memoryMb }: MachineSize): Record<string, string> => ({
  'limits.cpu': String(vcpus),
  'limits.memory': `${memoryMb}MiB`,
});

export const rootOf = ({ diskGb }: MachineSize, pool: string): Record<string, string> => ({
  type: 'disk',
  path: '/',
  pool,
  size: `${diskGb}GiB`,
});

/** The filters let the machine send from nothing but its own MAC and addresses. */
export function devicesOf(spec: MachineSpec, { network, pool }: Place): Record<string, Record<string, string>> {
  const { mac, ipv4, ipv6 } = spec.network;
  const nic: Record<string, string> = {
    type: 'nic',
    name: NIC,
    ...(network.managed ? { network: network.name } : { nictype: 'bridged', parent: network.name }),
    hwaddr: mac,
    'security.mac_filtering': 'true',
    ...(ipv4 && { 'ipv4.address': ipv4.address, 'security.ipv4_filtering': 'true' }),
    ...(ipv6 && network.ipv6 && { 'ipv6.address': ipv6.address, 'security.ipv6_filtering': 'true' }),
  };
  return { [ROOT]: rootOf(spec.size, pool), [NIC]: nic };
}

/** Without proof, which only the machine itself can give. */
export function observationOf(instance: Instance, key: MachineKey, serverName: string): Observation {
  const { order, generation } = key;
  const { status, location, config } = instance;
  const seen = {
    order,
    generation,
    proven: false,
    host: location === 'none' || !location ? serverName : location,
    detail: config?.[MARK.stuck] ? `${status}, cannot be removed` : status,
  };
  if (status === 'Error') return { ...seen, phase: 'unknown' };
  const power: Power = status === 'Stopped' ? 'off' : 'on';
  return { ...seen, power, phase: isReady(instance) ? 'present' : 'incomplete' };
}

export const isReady = ({ config }: Instance): boolean => config?.[MARK.ready] === '1';
