/** Bare-metal hosts: physical machines, each with a controller (BMC) that turns it on and off. */
import type { MachineSize } from '../driver.ts';

export interface BmcAccess {
  protocol: 'ipmi' | 'redfish';
  /** IPMI: a name or address, with `:port` if it is not 623. Redfish: the URL of the controller. */
  address: string;
  user: string;
  password: string;
  /** PEM of a certificate that vouches for the controller, its own as a rule (Redfish). Default: the public authorities. */
  certificate?: string;
}

export interface BareMetalHost {
  name: string;
  region: string;
  /** The tier that it is. */
  serviceCode: string;
  bmc: BmcAccess;
  /** Of the card that boots from the network. */
  mac: string;
  /** The device that the system goes to, and that is wiped, such as /dev/nvme0n1. */
  disk: string;
  size: MachineSize;
  /** How it starts. Default: BIOS. */
  firmware?: 'BIOS' | 'UEFI';
}

/**
 * The bare-metal hosts that there are, in the order in which they are to be given out, or, where one is named, that one alone. It is
 * asked each time, so that whatever an operator changes is so at once.
 */
export type Inventory = (name?: string) => Promise<readonly BareMetalHost[]>;
