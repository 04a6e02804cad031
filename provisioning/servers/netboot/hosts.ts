/** The inventory of bare-metal hosts, from the rows of the operator's hosts. */
import type { Queryable } from '../../../entities/database/transaction.ts';
import type { Vault } from '../../../entities/secrets.ts';
import { BMC_PASSWORD, FIND_BARE_METAL_HOSTS, type Host } from '../../../entities/servers/host.ts';
import type { BareMetalHost, Inventory } from '../drivers/bmc/host.ts';

const bareMetalHostOf = (host: Host, vault: Vault): BareMetalHost => ({
  name: host.name,
  region: host.regionCode,
  serviceCode: host.serviceCode!,
  bmc: {
    protocol: host.bmcProtocol === 'REDFISH' ? 'redfish' : 'ipmi',
    address: host.bmcAddress!,
    user: host.bmcUser!,
    password: BMC_PASSWORD.open(vault, host.bmcPassword!, host.name),
    ...(host.bmcCertificate !== null && { certificate: host.bmcCertificate }),
  },
  mac: host.mac!,
  disk: host.disk!,
  size: { vcpus: host.vcpus, memoryMb: host.memoryMb, diskGb: host.diskGb },
  ...(host.firmware !== null && { firmware: host.firmware }),
});

/** Reads the hosts at each call, so that the driver sees every change of the operator at once. */
export const bareMetalHostsOf =
  (db: Queryable, vault: Vault): Inventory =>
  async (name) =>
    (await FIND_BARE_METAL_HOSTS.all(db, [name ?? null])).map((host) => bareMetalHostOf(host, vault));
