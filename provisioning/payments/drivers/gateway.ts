/** How a driver is set up from the operator's file: what it may say, and what is made of it. */
import type { PaymentDriver } from './driver.ts';

export interface GatewayKind<Settings> {
  /** JSON Schema (2020-12) of the settings; `driver`, which names the kind, is not among them. */
  schema: object;
  /** Asks nobody: a gateway that is down must not keep the service from starting. @throws Error with what is wrong */
  open(settings: Settings): PaymentDriver;
}
