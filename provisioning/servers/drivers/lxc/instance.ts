/** Converts machines to instances of the engine, and back. The keys `user.freehold-*` hold all other facts. */
import {
  digestOf,
  type MachineKey,
  type MachineSize,
  type MachineSpec,
  type Observation,
  type Power,
} from '../driver.ts';
import { networkConfigOf, userDataOf } from './cloud-init.ts';

/** An instance as the engine shows it. */
export interface Instance {
  name: string;
  /** `Running`, `Stopped`, …; `Error` if its member does not answer. */
  status: string;
  /** Its member; `none` outside of clusters. */
  location: string;
  /** Without the configuration of profiles. Missing if the engine does not know it. */
  config?: Record<string, string>;
  devices?: Record<string, Record<string, string>>;
}

export const MARK = {
  order: 'user.freehold-order',
  generation: 'user.freehold-generation',
  image: 'user.freehold-image',
  /** The digest of its specification. */
  spec: 'user.freehold-spec',
  /** Set once it is made and started. A crash of the engine can leave an unfinished instance. */
  ready: 'user.freehold-ready',
  /** The last change, and for a restart the earlier process id. */
  change: 'user.freehold-change',
  before: 'user.freehold-change-before',
  /** The address where the driver looks for proof. */
  address: 'user.freehold-address',
  /** Set if it cannot be removed. Its network is detached. */
  stuck: 'user.freehold-stuck',
} as const;

export const NIC = 'eth0';
export const ROOT = 'root';

/** The name of a machine's instance. Order numbers have no lower case, so names stay unique. */
export const nameOf = ({ order, generation }: MachineKey): string => `${order.toLowerCase()}-${generation}`;

/** The key of the machine; undefined for instances without our mark. */
export function keyOf({ name, status, config }: Instance): MachineKey | undefined {
  const order = config?.[MARK.order];
  if (order) return { order, generation: Number(config[MARK.generation]) };
  // For a member that does not answer, only the name is known.
  const [, named, generation] = (status === 'Error' && !config?.[MARK.order] && /^(srv-\w+)-(\d+)$/.exec(name)) || [];
  return named ? { order: named.toUpperCase(), generation: Number(generation) } : undefined;
}

export const specDigestOf = (spec: MachineSpec): string => digestOf(spec).slice(0, 32);

/** The engine's network of machines. */
export interface Network {
  name: string;
  /** Whether the engine manages it, and runs DHCP there. Otherwise it is a bridge of the host. */
  managed: boolean;
  /** Whether machines can have IPv6 addresses in it. */
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
    [MARK.image]: spec.image,
    [MARK.spec]: specDigestOf(spec),
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

/** Disk and network card. The filters let the machine send only from its own MAC and IP addresses. */
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

/** The observation of an instance, without proof, which only the machine itself can give. */
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
  const [size, image] = [sizeOf(instance), config?.[MARK.image]];
  const phase = isReady(instance) ? ('present' as const) : ('incomplete' as const);
  return { ...seen, power, phase, ...(size && { size }), ...(image && { image }) };
}

export const isReady = ({ config }: Instance): boolean => config?.[MARK.ready] === '1';

/** The size as the driver wrote it; undefined if the operator wrote it in another form. */
function sizeOf({ config, devices }: Instance): MachineSize | undefined {
  const given = [config?.['limits.cpu'], config?.['limits.memory'], devices?.[ROOT]?.size];
  const forms = [/^(\d+)$/, /^(\d+)MiB$/, /^(\d+)GiB$/];
  const [vcpus = 0, memoryMb = 0, diskGb = 0] = forms.map((form, i) => Number(form.exec(given[i] ?? '')?.[1] ?? 0));
  return vcpus && memoryMb && diskGb ? { vcpus, memoryMb, diskGb } : undefined;
}
