/**
 * The interface of hardware drivers. The order number and generation identify a machine. All calls are idempotent, so a step
 * can repeat after a crash.
 */
import { createHash } from 'node:crypto';
import type { ImageStore } from './image-store.ts';

/** `unknown` means that the engine did not answer. Callers must not treat it as `absent`. */
export type Phase = 'absent' | 'incomplete' | 'present' | 'unknown';

export interface MachineKey {
  /** The order number. */
  order: string;
  /** Grows by one with each machine of the order that the worker gives up. */
  generation: number;
}

/** The most of an integer in the database. */
export const INT_MAX = 2 ** 31 - 1;
const ORDER_LENGTH_MAX = 64;
/** Whether the database can store the name of a machine. Operators of an engine can garble the marks there. */
export const isSoundKey = ({ order, generation }: MachineKey): boolean =>
  order.length <= ORDER_LENGTH_MAX &&
  isStorable(order) &&
  Number.isInteger(generation) &&
  generation > 0 &&
  generation <= INT_MAX;
/** Whether the database can store a text: without NUL, and without halves of a pair of UTF-16. */
export const isStorable = (text: string): boolean => !text.includes('\0') && text.isWellFormed();

export interface MachineSpec extends MachineKey {
  kind: 'VPS' | 'DEDICATED';
  serviceCode: string;
  region: string;
  image: string;
  hostname: string;
  /** Canonical OpenSSH public keys. */
  sshPublicKeys: string[];
  /** Null: root has no password. */
  rootPassword: string | null;
  /** For cloud-init. */
  userData: string | null;
  /** The size of its tier. */
  size: MachineSize;
  /** Other properties of its tier. Absent: the driver's choice. */
  traits?: MachineTraits;
  /** The host that Freehold has picked; null if the driver has only one, or picks it. */
  host: string | null;
  network: MachineNetwork;
}

/**
 * SHA-256 in hex. The same specification has the same digest. It leaves out the secrets, which it could help to guess. It
 * also leaves out host and traits: the operator may move the machine, and change the tier.
 */
export function digestOf({ rootPassword: _, userData: __, host: ___, traits: ____, ...spec }: MachineSpec): string {
  return createHash('sha256').update(JSON.stringify(spec)).digest('hex');
}

/** The properties of a tier of VPS beside its size. */
export interface MachineTraits {
  /** `kvm`: the machine has a kernel of its own. */
  virtualization: 'container' | 'kvm';
  /** Whether containers can run in the machine. */
  nesting: boolean;
  /** Megabits a second in each direction. */
  portMbps: number;
}

export interface MachineSize {
  vcpus: number;
  memoryMb: number;
  diskGb: number;
}

/** An address of the machine, in a network of its host. */
export interface MachineAddress {
  address: string;
  prefixLength: number;
  /** Null: the host routes the address. */
  gateway: string | null;
}

/** The claimed addresses of a machine. Drivers give it no other address, and block others (spoofing). */
export interface MachineNetwork {
  /** Locally administered, and derived from order and generation: no two generations share a MAC address. */
  mac: string;
  ipv4: MachineAddress | null;
  ipv6: MachineAddress | null;
  /** The prefix that is routed to the machine, such as 2001:db8::/64. */
  ipv6Prefix: string | null;
}

export type Power = 'on' | 'off';
/** `restart` asks the system to restart, `reset` cuts the power. */
export type PowerChange = Power | 'restart' | 'reset';

export interface Observation extends MachineKey {
  phase: Phase;
  /** Undefined: unknown. */
  power?: Power;
  /** True while the engine installs it, or turns it on or off. Its power does not count until then. */
  busy?: boolean;
  /**
   * Whether its SSH server answered, or it phoned home. This counts once, for the delivery of an order. Afterwards the customer
   * may close the port, so the power counts.
   */
  proven: boolean;
  /** Its size and its image, as the engine has them. Undefined: unknown. */
  size?: MachineSize;
  image?: string;
  /** The host that it is on. */
  host?: string;
  /** Its IP addresses. Undefined: unknown, or it has none. */
  addresses?: readonly string[];
  /** The engine's name of its state, for operators. */
  detail?: string;
  /** The reason why it cannot move to another host, as sentences for the operator. Undefined: the driver knows of none. */
  stays?: string;
}

/** The counters of a machine that is on, from its own side. Null: the engine does not know. */
export interface Reading extends MachineKey {
  /** Another value after each start, with which all counters began at zero. */
  epoch: string;
  /** Bytes and packets of its network card. Null: the machine hides the card. */
  sentBytes: number | null;
  receivedBytes: number | null;
  sentPackets: number | null;
  /** Nanoseconds of all vCPUs. */
  cpuNs: number | null;
  /** The occupied bytes at this moment. */
  memoryBytes: number | null;
  diskBytes: number | null;
  /** The speed of its network card, in megabits a second. */
  portMbps: number | null;
  /** Whether several cards pass for its network card. All of them count. */
  isDisguised?: boolean;
  /** Whether its counters did not fit into an answer of the engine. No other field but the key tells anything. */
  isUnread?: boolean;
}

/** A host as its engine sees it. */
export interface HostReport {
  name: string;
  /** An offline host gets no machines, such as one that the operator has evacuated. */
  state: 'online' | 'offline';
  /** A sentence that says why it is offline. */
  trouble?: string;
  size: MachineSize;
  /** Whole GB in which a rebuild makes the new disk before it deletes the old one. Undefined: unknown, or no rebuild needs it. */
  diskFreeGb?: number;
}

/** An engine, as it tells of itself. */
export interface EngineReport {
  product: 'LXD' | 'INCUS';
  version: string;
  /** The names of its images. */
  images: string[];
}

export interface HardwareDriver {
  /** The name of its engine. Drivers of the environment have their own name. */
  readonly name: string;
  /** Whether its machines are simulated. */
  readonly simulated: boolean;
  /** Whether it makes machines only on hosts of the operator's list. Default: it picks a host if the list is empty. */
  readonly needsHosts?: boolean;
  /** The hosts for machines; empty if the driver has only one host. @throws DriverError unreachable */
  capacity(signal: AbortSignal): Promise<HostReport[]>;
  /** Asks the engine about itself. Drivers whose engine tells nothing have no such call. @throws DriverError unreachable */
  about?(signal: AbortSignal): Promise<EngineReport>;
  /** Drivers without images of an engine have no store. */
  readonly imageStore?: ImageStore;
  /** All machines with our mark, in every state. @throws DriverError unreachable */
  list(signal: AbortSignal): Promise<Observation[]>;
  /**
   * Reads the counters of all machines that are on, by one request. A driver without it counts nothing.
   * @throws DriverError unreachable
   */
  meter?(signal: AbortSignal): Promise<Reading[]>;
  /** Changes the speed of the network card of a machine that is on, without a break. @throws DriverError */
  setSpeed?(machine: MachineKey, portMbps: number, signal: AbortSignal): Promise<void>;
  /** Makes the machine, unless it exists. @throws DriverError */
  create(spec: MachineSpec, signal: AbortSignal): Promise<Observation>;
  /** @throws DriverError unreachable */
  observe(machine: MachineKey, signal: AbortSignal): Promise<Observation>;
  /**
   * Changes its power. A repeated call with the same change restarts the machine once.
   * @throws DriverError
   */
  power(machine: MachineKey, want: PowerChange, change: string, signal: AbortSignal): Promise<Observation>;
  /** Makes the machine anew from an image, erases it, and turns it on, once for each change. @throws DriverError */
  rebuild(spec: MachineSpec, change: string, signal: AbortSignal): Promise<Observation>;
  /**
   * Gives back the machine that an unfinished rebuild was replacing, with its data. Phase `present` says that it is back.
   * Drivers that keep no such machine have no such call.
   * @throws DriverError
   */
  restore?(machine: MachineKey, signal: AbortSignal): Promise<Observation>;
  /** Gives a machine that is off the size of its tier, and keeps its data. @throws DriverError */
  resize(spec: MachineSpec, change: string, signal: AbortSignal): Promise<Observation>;
  /**
   * Moves a machine that is off to another host of its engine, with its data, and leaves it off. Drivers that cannot have no
   * such call.
   * @throws DriverError rejected if it is on
   */
  move?(machine: MachineKey, host: string, signal: AbortSignal): Promise<Observation>;
  /**
   * Whether the driver can make machines in a region. The worker calls it twice a minute, for the status page, so it must be
   * cheap. Without it, the driver counts as reachable.
   */
  reachable?(region: string, signal: AbortSignal): Promise<boolean>;
  /**
   * Checks the set-up of the engine at the start of a worker, and sets up what it may.
   * @returns warnings for the operator, as sentences
   * @throws DriverError rejected until the operator has followed its message; unreachable
   */
  check?(signal: AbortSignal): Promise<readonly string[]>;
  /** Removes the machine. Only the phase `absent` confirms that it is gone. @throws DriverError */
  destroy(machine: MachineKey, signal: AbortSignal): Promise<Observation>;
}

/**
 * - `unreachable`: the state is unknown, and the worker tries again later;
 * - `no_capacity`, `rejected`: another attempt would fail as well;
 * - `conflict`: a machine of that key has another specification;
 * - `failed`: this attempt failed, and another can succeed;
 * - `stuck`: the driver can neither finish nor remove the machine.
 */
export type DriverErrorCode = 'unreachable' | 'no_capacity' | 'rejected' | 'conflict' | 'failed' | 'stuck';

export class DriverError extends Error {
  readonly code: DriverErrorCode;
  constructor(code: DriverErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** Runs the calls for a machine one after the other. */
export type InTurn = <T>(machine: MachineKey, signal: AbortSignal, work: () => Promise<T>) => Promise<T>;

/** Makes the queues of a driver's machines in this process. The lease of its task excludes calls of other processes. */
export function turns(): InTurn {
  const ends = new Map<string, Promise<unknown>>();
  return ({ order, generation }, signal, work) => {
    const name = `${order}.${generation}`;
    const begin = () => {
      signal.throwIfAborted(); // Before it writes a plan that other processes would carry out.
      return work();
    };
    const before = ends.get(name) ?? Promise.resolve();
    const turn = before.then(begin, begin);
    const end: Promise<unknown> = turn.catch(() => {}).then(() => ends.get(name) === end && ends.delete(name));
    ends.set(name, end);
    return Promise.race([turn, ended(before, signal)]);
  };
}

/** Rejects if the signal aborts before that end. A call that waits for its turn then ends at once. */
function ended(end: Promise<unknown>, signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    const stop = () => signal.removeEventListener('abort', abort);
    end.then(stop, stop);
  });
}

/** The environment of programs that drivers run. It has no variable of the service, because those may be secrets. */
export const ENVIRONMENT = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' };
