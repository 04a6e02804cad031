/**
 * What every hardware driver implements. A machine is known by its order number and generation; all calls are
 * idempotent, so a step that is repeated after a crash does no harm.
 */

import { createHash } from 'node:crypto';

/** `unknown` means that nobody could be asked: it is never to be taken for `absent`. */
export type Phase = 'absent' | 'incomplete' | 'present' | 'unknown';

export interface MachineKey {
  /** The order number. */
  order: string;
  /** Grows by one with each machine of the order that had to be given up. */
  generation: number;
}

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
  /** cloud-init. */
  userData: string | null;
  /** What the tier has. */
  size: MachineSize;
  /** The host that the allocator has picked; null where drivers know but one, or pick it themselves. */
  host: string | null;
  network: MachineNetwork;
}

/** The same specification has the same digest. */
export const digestOf = (spec: object): string => createHash('sha256').update(JSON.stringify(spec)).digest('hex');

export interface MachineSize {
  vcpus: number;
  memoryMb: number;
  diskGb: number;
}

/** An address of the machine, in a network that its host is connected to. */
export interface MachineAddress {
  address: string;
  prefixLength: number;
  /** Null: the host routes by itself. */
  gateway: string | null;
}

/** What was claimed for the machine. Drivers give it no other address, and let it use no other (spoofing). */
export interface MachineNetwork {
  /** Locally administered, of the order and its generation: another generation never has the MAC of a dead one. */
  mac: string;
  ipv4: MachineAddress | null;
  ipv6: MachineAddress | null;
  /** The whole prefix that is routed to the machine, such as 2001:db8::/64. */
  ipv6Prefix: string | null;
}

export type Power = 'on' | 'off';
/** `restart` asks the system to, `reset` cuts the power. */
export type PowerChange = Power | 'restart' | 'reset';

export interface Observation extends MachineKey {
  phase: Phase;
  /** Undefined: nobody could tell. */
  power?: Power;
  /** Its SSH server answered, or it phoned home. A server is running, and billed, only with proof. */
  proven: boolean;
  /** The host that it is on. */
  host?: string;
  /** What the engine calls its state, for operators. */
  detail?: string;
}

/** A host as its engine sees it. */
export interface HostReport {
  name: string;
  state: 'online' | 'offline' | 'drained';
  size: MachineSize;
}

export interface HardwareDriver {
  /** Its name in the configuration. */
  readonly name: string;
  /** Whether no real machine comes of it. */
  readonly simulated: boolean;
  /** Whether it makes machines on hosts of the operator's list alone. Default: without any, it picks where they go. */
  readonly needsHosts?: boolean;
  /** The hosts that machines can be made on; empty where there is nothing to pick from. @throws DriverError unreachable */
  capacity(signal: AbortSignal): Promise<HostReport[]>;
  /** All machines with our mark, whatever became of them. @throws DriverError unreachable */
  list(signal: AbortSignal): Promise<Observation[]>;
  /** Makes the machine, or finds that it is made already. @throws DriverError */
  create(spec: MachineSpec, signal: AbortSignal): Promise<Observation>;
  /** @throws DriverError unreachable */
  observe(machine: MachineKey, signal: AbortSignal): Promise<Observation>;
  /**
   * Changes its power. The call of one change that comes twice restarts the machine once.
   * @throws DriverError
   */
  power(machine: MachineKey, want: PowerChange, change: string, signal: AbortSignal): Promise<Observation>;
  /** Makes it anew from an image, with nothing on it, and turned on; once for each change. @throws DriverError */
  rebuild(spec: MachineSpec, change: string, signal: AbortSignal): Promise<Observation>;
  /** Gives a machine that is off the size of its tier, and keeps what is on it. @throws DriverError */
  resize(spec: MachineSpec, change: string, signal: AbortSignal): Promise<Observation>;
  /**
   * Whether it can be asked to make machines in a region; costs little, and changes nothing. It is asked twice a minute,
   * for the status page. Without it, the driver counts as reachable.
   */
  reachable?(region: string, signal: AbortSignal): Promise<boolean>;
  /** Removes the machine; only `absent` is confirmation. @throws DriverError */
  destroy(machine: MachineKey, signal: AbortSignal): Promise<Observation>;
}

/**
 * - `unreachable`: try again later, nothing is known;
 * - `no_capacity`, `rejected`: it will not be made; give the order up;
 * - `conflict`: there is a machine of that key with another specification;
 * - `failed`: this attempt went wrong, another may not;
 * - `stuck`: it can neither be finished nor removed.
 */
export type DriverErrorCode = 'unreachable' | 'no_capacity' | 'rejected' | 'conflict' | 'failed' | 'stuck';

export class DriverError extends Error {
  readonly code: DriverErrorCode;
  constructor(code: DriverErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
