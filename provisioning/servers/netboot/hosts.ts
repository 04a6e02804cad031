/** The inventory of bare-metal hosts: the operator's dedicated hosts that have all that the driver needs. */

import { columnsOf } from '../../../entities/database/table.ts';
import type { Queryable } from '../../../entities/database/transaction.ts';
import type { Vault } from '../../../entities/secrets.ts';
import { bmcPasswordContext, Host } from '../../../entities/servers/host.ts';
import type { BareMetalHost, Inventory } from '../drivers/bmc/host.ts';

/** Also drained ones, for their machines are to be looked after. Nothing is kept: one row is read by its key. */
const SELECT = `
  select ${columnsOf(Host)} from host
  where kind = 'DEDICATED' and driver = 'bmc' and bmc_password is not null and mac is not null and disk is not null
    and ($1::text is null or name = $1) order by name`;

export const bareMetalHostsOf =
  (db: Queryable, vault: Vault): Inventory =>
  async (name) =>
    (await db.query<Host>(SELECT, [name ?? null])).map((host) => bareMetalHostOf(host, vault));

const bareMetalHostOf = (host: Host, vault: Vault): BareMetalHost => ({
  name: host.name,
  region: host.regionCode,
  serviceCode: host.serviceCode!,
  bmc: {
    protocol: host.bmcProtocol === 'REDFISH' ? 'redfish' : 'ipmi',
    address: host.bmcAddress!,
    user: host.bmcUser!,
    password: vault.open(host.bmcPassword!, bmcPasswordContext(host.name)),
    ...(host.bmcCertificate !== null && { certificate: host.bmcCertificate }),
  },
  mac: host.mac!,
  disk: host.disk!,
  size: { vcpus: host.vcpus, memoryMb: host.memoryMb, diskGb: host.diskGb },
  ...(host.firmware !== null && { firmware: host.firmware }),
});
