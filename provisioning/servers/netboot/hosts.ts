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
  boot: host.bootNetworkIsolated ? 'NETWORK' : 'MEDIUM',
  ...unreadyOf(host),
  ...(host.bmcUsers !== null && { bmcUsers: host.bmcUsers }),
  size: { vcpus: host.vcpus, memoryMb: host.memoryMb, diskGb: host.diskGb },
  ...(host.firmware !== null && { firmware: host.firmware }),
});

/** Names the part that a safe installation and wipe lacks. `READY_SQL` of the entity keeps such hosts from being sold. */
function unreadyOf({ name, disks, bmcProtocol, bootNetworkIsolated }: Host): { unready?: string } {
  if (!disks.length) return { unready: `The disks of ${name} are unknown. State all of them with updateHost.` };
  if (bootNetworkIsolated || bmcProtocol === 'REDFISH') return {};
  return { unready: `IPMI has no virtual media. Isolate the boot network of ${name}, and set bootNetworkIsolated.` };
}

/** Reads the hosts at each call, so that the driver sees every change of the operator at once. */
export const bareMetalHostsOf =
  (db: Queryable, vault: Vault): Inventory =>
  async (name) =>
    (await FIND_BARE_METAL_HOSTS.all(db, [name ?? null])).map((host) => bareMetalHostOf(host, vault));
