/** Bare-metal hosts: physical machines, each with a controller (BMC) that turns it on and off. */
import type { MachineSize } from '../driver.ts';

export interface BmcAccess {
  protocol: 'ipmi' | 'redfish';
  /** IPMI: a name or address, with `:port` if it is not 623. Redfish: the URL of the controller. */
  address: string;
  user: string;
  password: string;
  /** PEM of the certificate to trust, usually the controller's own (Redfish). Default: those of public authorities. */
  certificate?: string;
}

export interface BareMetalHost {
  name: string;
  region: string;
  /** The tier as which it is sold. */
  serviceCode: string;
  bmc: BmcAccess;
  /** The MAC address of the card that boots from the network. */
  mac: string;
  /**
   * The way of the installer to the host. In the network, everybody with its MAC address can ask for it. A medium comes from
   * its controller.
   */
  boot: 'NETWORK' | 'MEDIUM';
  /** A sentence that says why the driver neither installs nor wipes it. Default: it does. */
  unready?: string;
  /**
   * The users that its controller had before its last machine, as `id:name:privilege`. Absent if the driver has compared them.
   * Others may be users of that machine's customer.
   */
  bmcUsers?: string[];
  size: MachineSize;
  /** The firmware that starts it. Default: BIOS. */
  firmware?: 'BIOS' | 'UEFI';
}

/**
 * Lists all bare-metal hosts, in the order of their use, or only the given one. The driver calls it each time, so changes of the
 * operator apply at once.
 */
export type Inventory = (name?: string) => Promise<readonly BareMetalHost[]>;
