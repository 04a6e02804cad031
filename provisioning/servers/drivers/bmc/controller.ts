/** What both protocols can do, and no more than is needed of them. Each call is idempotent. */
import type { Power } from '../driver.ts';

export type Device = 'PXE' | 'DISK';

export interface Controller {
  /** @throws DriverError unreachable */
  power(signal: AbortSignal): Promise<Power>;
  /** May return before the machine is on. @throws DriverError unreachable, failed */
  on(signal: AbortSignal): Promise<void>;
  /** Cuts the power. May return before the machine is off. @throws DriverError unreachable, failed */
  off(signal: AbortSignal): Promise<void>;
  /** Asks the system to turn the machine off (ACPI), which it may not heed. @throws DriverError unreachable, failed */
  shutDown(signal: AbortSignal): Promise<void>;
  /** What the next start, and only that, boots from. @throws DriverError unreachable, failed */
  bootFrom(device: Device, signal: AbortSignal): Promise<void>;
}
