/** The commands of a controller (BMC) that both protocols have. Each is idempotent. */
import type { Power } from '../driver.ts';

export type Device = 'PXE' | 'DISK';

export interface Controller {
  /** @throws DriverError unreachable */
  power(signal: AbortSignal): Promise<Power>;
  /** May return before the machine is on. @throws DriverError unreachable, failed */
  on(signal: AbortSignal): Promise<void>;
  /** Cuts the power. May return before the machine is off. @throws DriverError unreachable, failed */
  off(signal: AbortSignal): Promise<void>;
  /** Asks the system to turn the machine off (ACPI). The system may ignore it. @throws DriverError unreachable, failed */
  shutDown(signal: AbortSignal): Promise<void>;
  /** Sets the boot device of the next start only. @throws DriverError unreachable, failed */
  bootFrom(device: Device, signal: AbortSignal): Promise<void>;
}
