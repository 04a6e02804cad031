/** What the driver keeps of the machines that it makes. It is kept outside of this process, so that any other can go on. */
import type { MachineKey, MachineSpec } from '../driver.ts';
import type { Device } from './controller.ts';
import type { BareMetalHost } from './host.ts';

export interface HostDeployment {
  id: string;
  orderNumber: string;
  generation: number;
  box: string;
  /**
   * WAITING until the machine has been given its installer by the network, BOOTED when its own system phoned home. RETIRED:
   * the operator vouches that the machine is gone; the host is given to nobody.
   */
  state: 'WAITING' | 'INSTALLING' | 'INSTALLED' | 'BOOTED' | 'WIPING' | 'WIPED' | 'RETIRED';
  /** Grows with each system that is installed, and with the wipe. */
  run: number;
  specDigest: string;
  device: Device;
  /** What is left to do of a power cycle that leads to that device. The second half ends when its system has given proof. */
  cycle: 'OFF' | 'ON' | null;
  /** The last change that was asked for. */
  change: string | null;
  /** IPv4, of the installed system; null where DHCP decides, so that nobody knows. */
  address: string | null;
}

/** What is to be done with the power: both halves of a cycle, or only the second. */
export interface PowerPlan {
  device: Device;
  cycle: 'OFF' | 'ON' | null;
  change?: string;
}

/** All writes are fenced by the run: of a deployment that went on meanwhile they change nothing. */
export interface DeploymentStore {
  find(machine: MachineKey): Promise<HostDeployment | undefined>;
  list(): Promise<HostDeployment[]>;
  /** Writes that the machine goes onto that host. Undefined: another is there. Of the same machine: the one that is. */
  begin(spec: MachineSpec, specDigest: string, host: BareMetalHost): Promise<HostDeployment | undefined>;
  /** Writes that the system is to be made anew, for a change. */
  renew(of: HostDeployment, spec: MachineSpec, specDigest: string, change: string): Promise<void>;
  /** Writes that the disk is to be wiped. */
  wipe(of: HostDeployment): Promise<void>;
  plan(of: HostDeployment, plan: PowerPlan): Promise<void>;
  /** Writes that a half of the power cycle is done: the first, or the second, which `of` has as the next. */
  cycled(of: HostDeployment): Promise<void>;
  /** The host is free again. */
  release(of: HostDeployment): Promise<void>;
}
