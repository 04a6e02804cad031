/** The commands of a controller (BMC) that both protocols have. Each is idempotent. */
import type { Power } from '../driver.ts';

/** PXE is the installer or the wiper: over the network, or as virtual media. */
export type Device = 'PXE' | 'DISK';

/** An account of the controller that can log in. */
export interface BmcUser {
  id: string;
  name: string;
  privilege: string;
  /** Whether the service logs in as this user. */
  own: boolean;
}

export interface Controller {
  /** @throws DriverError unreachable */
  power(signal: AbortSignal): Promise<Power>;
  /** May return before the machine is on. @throws DriverError unreachable, failed */
  on(signal: AbortSignal): Promise<void>;
  /** Cuts the power. May return before the machine is off. @throws DriverError unreachable, failed */
  off(signal: AbortSignal): Promise<void>;
  /** Asks the system to turn the machine off (ACPI). The system may ignore it. @throws DriverError unreachable, failed */
  shutDown(signal: AbortSignal): Promise<void>;
  /**
   * Sets the boot device of the next start only.
   * @param medium the URL of the image to boot instead of the network
   * @throws DriverError unreachable, failed
   */
  bootFrom(device: Device, signal: AbortSignal, medium?: string): Promise<void>;
  /** Whether it can boot from the image of a URL. @throws DriverError unreachable */
  hasMedium(signal: AbortSignal): Promise<boolean>;
  /** The users that can log in; undefined if it cannot list them. @throws DriverError unreachable, failed */
  users(signal: AbortSignal): Promise<BmcUser[] | undefined>;
  /** Takes the access of a user away. @throws DriverError unreachable, failed */
  disable(user: BmcUser, signal: AbortSignal): Promise<void>;
}
