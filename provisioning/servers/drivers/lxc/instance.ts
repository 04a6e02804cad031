/** Converts machines to instances of the engine, and back. The keys `user.freehold-*` hold all other facts. */
import { isIP } from 'node:net';
import {
  DriverError,
  digestOf,
  type MachineKey,
  type MachineSize,
  type MachineSpec,
  type Observation,
  type Power,
} from '../driver.ts';
import { networkConfigOf, userDataOf } from './cloud-init.ts';
import { limitsOf, ROOT, rootOf, securityOf, TRAITS } from './limits.ts';
import { isLoose, type Network, NIC, nicOf } from './network.ts';

/** An instance as the engine shows it. */
export interface Instance {
  name: string;
  /** `container` or `virtual-machine`. */
  type?: string;
  /** `Running`, `Ready`, `Stopped`, …; `Error` if its member does not answer, or its virtual machine hangs or has failed. */
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
  /** The host of the last move that the driver began. */
  move: 'user.freehold-move',
  /** Set on a machine that a rebuild replaces: its former state, as JSON. */
  parked: 'user.freehold-parked',
  /** The address where the driver looks for proof. */
  address: 'user.freehold-address',
  /** Set if it cannot be removed. Its network is detached. */
  stuck: 'user.freehold-stuck',
} as const;

/** The name of a machine's first instance. Order numbers have no lower case, so names stay unique. */
export const nameOf = ({ order, generation }: MachineKey): string => `${order.toLowerCase()}-${generation}`;

/** The two names that a machine can have. A rebuild makes its new instance under the other one. */
export const namesOf = (key: MachineKey): [string, string] => [nameOf(key), `${nameOf(key)}-b`];

/** The key of the machine; undefined for instances without our mark. */
export function keyOf(instance: Instance): MachineKey | undefined {
  const { config } = instance;
  const order = config?.[MARK.order];
  if (order) return { order, generation: Number(config[MARK.generation]) };
  // For a member that does not answer, only the name is known.
  const [, named, generation] = (isSilent(instance) && /^(srv-\w+)-(\d+)(-b)?$/.exec(instance.name)) || [];
  return named ? { order: named.toUpperCase(), generation: Number(generation) } : undefined;
}

export const specDigestOf = (spec: MachineSpec): string => digestOf(spec).slice(0, 32);

/** The means of an engine for its machines. */
export interface Place {
  network: Network;
  pool: string;
  nameservers: readonly string[];
  /** Whether its kernel can limit what a machine sends. */
  polices: boolean;
}

/** The body of the request that makes the instance of a machine. */
export function instanceOf(spec: MachineSpec, place: Place) {
  const { virtualization } = spec.traits ?? TRAITS;
  return {
    name: nameOf(spec),
    type: virtualization === 'kvm' ? 'virtual-machine' : 'container',
    // Profiles could add networks and limits.
    profiles: [],
    source: { type: 'image', alias: aliasOf(spec) },
    config: configOf(spec, place),
    devices: devicesOf(spec, place),
  };
}

/** The image of a machine on the engine. A virtual machine boots from an image of its own. */
export const aliasOf = ({ image, traits = TRAITS }: MachineSpec): string =>
  traits.virtualization === 'kvm' ? `${image}-vm` : image;

function configOf(spec: MachineSpec, { network, nameservers }: Place): Record<string, string> {
  const { ipv4, ipv6 } = spec.network;
  const given = network.ipv6 ? spec.network : { ...spec.network, ipv6: null };
  return {
    ...limitsOf(spec),
    ...securityOf(spec),
    'cloud-init.user-data': userDataOf(spec),
    'cloud-init.network-config': networkConfigOf(given, nameservers),
    [MARK.order]: spec.order,
    [MARK.generation]: String(spec.generation),
    [MARK.image]: spec.image,
    [MARK.spec]: specDigestOf(spec),
    [MARK.address]: ipv4?.address ?? ipv6?.address ?? '',
  };
}

/** Disk and network card. A virtual machine reads the data of cloud-init from a disk, too. */
function devicesOf(spec: MachineSpec, { network, pool, polices }: Place): Record<string, Record<string, string>> {
  const { portMbps, virtualization } = spec.traits ?? TRAITS;
  return {
    [ROOT]: rootOf(spec.size, pool),
    [NIC]: nicOf(spec.network, network, { portMbps, polices }),
    ...(virtualization === 'kvm' && { 'cloud-init': { type: 'disk', source: 'cloud-init:config' } }),
  };
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
  if (isSilent(instance)) return { ...seen, phase: 'unknown' };
  const power = powerOf(instance);
  const [size, image] = [sizeOf(instance), config?.[MARK.image]];
  const phase = isReady(instance) ? ('present' as const) : ('incomplete' as const);
  return { ...seen, power, phase, addresses: addressesOf(instance), ...(size && { size }), ...(image && { image }) };
}

const addressesOf = ({ devices }: Instance): string[] =>
  ['ipv4.address', 'ipv6.address'].map((name) => devices?.[NIC]?.[name] ?? '').filter(isIP);

/** Root in a container can choose the word for one that is on, so only `Stopped` counts. */
export const powerOf = ({ status }: Pick<Instance, 'status'>): Power => (status === 'Stopped' ? 'off' : 'on');

/** Whether its member does not answer. A member that answers reports our mark, also of a virtual machine that hangs. */
const isSilent = ({ status, config }: Instance): boolean => status === 'Error' && !config?.[MARK.order];

/** @throws DriverError unreachable if its member does not answer */
export function answering(instance: Instance): Instance {
  if (!isSilent(instance)) return instance;
  throw new DriverError('unreachable', `${instance.location} does not answer.`);
}

/** Whether it is a finished machine, and no rebuild is replacing it. */
export const isReady = (instance: Instance): boolean => instance.config?.[MARK.ready] === '1' && !isParked(instance);

/** Whether a rebuild is replacing it. */
export const isParked = ({ config }: Instance): boolean => Boolean(config?.[MARK.parked]);

/** Whether it is the copy that an engine makes to move an instance; see copy.ts. */
export const isCopy = ({ name }: Instance): boolean => /^(lxd|incus)-move-of-/.test(name);

/** The instance of a machine among those of its two names: the finished one, or the unfinished, or the replaced. */
export function presentOf<One extends Instance>(instances: readonly One[]): One | undefined {
  const own = instances.filter((one) => !isCopy(one));
  const counting = own.length ? own : instances;
  return counting.find(isReady) ?? counting.find((one) => !isParked(one)) ?? counting[0];
}

/** The machines among instances, each by its present one. */
export function machinesIn<One extends Instance>(instances: readonly One[]): One[] {
  const machines = Map.groupBy(instances, (one) => {
    const key = keyOf(one);
    return key && nameOf(key);
  });
  machines.delete(undefined);
  return [...machines.values()].map((alike) => presentOf(alike)!);
}

/** Whether it is an instance of that machine. */
export const isOf = (instance: Instance, key: MachineKey): boolean => {
  const found = keyOf(instance);
  return found?.order === key.order && found.generation === key.generation;
};

/** The size as the driver wrote it; undefined if the operator wrote it in another form. */
function sizeOf({ config, devices }: Instance): MachineSize | undefined {
  const given = [config?.['limits.cpu'], config?.['limits.memory'], devices?.[ROOT]?.size];
  const forms = [/^(\d+)$/, /^(\d+)MiB$/, /^(\d+)GiB$/];
  const [vcpus = 0, memoryMb = 0, diskGb = 0] = forms.map((form, i) => Number(form.exec(given[i] ?? '')?.[1] ?? 0));
  return vcpus && memoryMb && diskGb ? { vcpus, memoryMb, diskGb } : undefined;
}

/** A warning for the operator about machines whose network cards lack filters. */
export function looseCards(instances: readonly Instance[]): string[] {
  const loose = instances.filter(
    (one) => keyOf(one) && !isParked(one) && one.devices?.[NIC] && isLoose(one.devices[NIC]),
  );
  if (!loose.length) return [];
  const [{ name }] = loose as [Instance];
  return [
    `An older version made the network cards of ${loose.length} of our machines, such as ${name}. ` +
      'Until their next start by the service they may reach other machines, or fail to start again. See "Keeping machines apart" in docs/operate/lxd.md.',
  ];
}
