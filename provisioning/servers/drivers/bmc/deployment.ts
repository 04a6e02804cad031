/** The store of the driver: its deployments, outside of the process, so that another process can continue them. */
import type { MachineKey, MachineSpec } from '../driver.ts';
import type { Device } from './controller.ts';
import type { BareMetalHost } from './host.ts';

export interface HostDeployment {
  id: string;
  orderNumber: string;
  generation: number;
  box: string;
  /**
   * WAITING until the machine has its installer, BOOTED when its system has phoned home. The customer may replace that call,
   * so an INSTALLED machine may run as well. RETIRED: the operator vouches that the machine is gone, and the host gets no other.
   */
  state: 'WAITING' | 'INSTALLING' | 'INSTALLED' | 'BOOTED' | 'WIPING' | 'WIPED' | 'RETIRED';
  /** Grows with each installation, and with the wipe. */
  run: number;
  specDigest: string;
  device: Device;
  /** The halves of a power cycle to that device that are still to do. */
  cycle: 'OFF' | 'ON' | null;
  /** The id of the last change. */
  change: string | null;
  /** The IPv4 address of the installed system; null if DHCP decides, so it is unknown. */
  address: string | null;
  /** Seconds without a command to the host, or news from it. */
  silentSeconds: number;
  /** How often the driver has restarted a silent wiper of this run. */
  restarts: number;
  /** The users that the controller had before the machine was there, as `id:name:privilege`; null: unknown. */
  bmcUsers: string[] | null;
}

/** A plan for the power: both halves of a cycle, or only the second. */
export interface PowerPlan {
  device: Device;
  cycle: 'OFF' | 'ON' | null;
  change?: string;
}

/** The run fences all writes: they change nothing if another run has begun. */
export interface DeploymentStore {
  find(machine: MachineKey): Promise<HostDeployment | undefined>;
  list(): Promise<HostDeployment[]>;
  /**
   * Reserves the host for the machine. Returns the machine's deployment, or undefined if another machine has the host.
   * @param bmcUsers the present users of its controller
   */
  begin(
    spec: MachineSpec,
    specDigest: string,
    host: BareMetalHost,
    bmcUsers: string[] | null,
  ): Promise<HostDeployment | undefined>;
  /** Plans a new installation, for a change. */
  renew(of: HostDeployment, spec: MachineSpec, specDigest: string, change: string): Promise<void>;
  /** Plans the wipe of all disks. */
  wipe(of: HostDeployment): Promise<void>;
  /** Plans to boot a silent wiper once more. */
  restartWiper(of: HostDeployment): Promise<void>;
  plan(of: HostDeployment, plan: PowerPlan): Promise<void>;
  /** Writes that the next half of the power cycle, according to `of`, is done. */
  cycled(of: HostDeployment): Promise<void>;
  /** The URL of the boot medium of this run, which contains its secrets. @throws DriverError without such a URL */
  mediumOf(of: HostDeployment): string;
  /** Frees the host. */
  release(of: HostDeployment): Promise<void>;
}
