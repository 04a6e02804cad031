/** Boxes: hosts that are sold as a whole, each with a controller (BMC) that turns it on and off. */
export const BMC_PROTOCOLS = ['IPMI', 'REDFISH'] as const;
export const FIRMWARES = ['BIOS', 'UEFI'] as const;

/** How the controller of a box is reached. */
export interface Bmc {
  protocol: (typeof BMC_PROTOCOLS)[number];
  address: string;
  user: string;
  password: string;
  /** PEM of a certificate that vouches for the controller (Redfish). */
  certificate?: string | null | undefined;
}

/** What the password of a BMC is sealed for. */
export const bmcPasswordContext = (host: string): string => `host.bmc_password:${host}`;
