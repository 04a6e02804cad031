/** The hardware drivers of the configuration. Machines of a kind are simulated, unless it names a driver or none. */
import { join } from 'node:path';
import type { Database } from '../../entities/database/database.ts';
import type { Vault } from '../../entities/secrets.ts';
import { ENGINE_KEY } from '../../entities/servers/engine.ts';
import { BmcDriver } from './drivers/bmc/bmc.ts';
import type { HardwareDriver } from './drivers/driver.ts';
import { lxcDriver, lxcDriverBy } from './drivers/lxc/settings.ts';
import { ManualDriver } from './drivers/manual.ts';
import { SimulatedDriver } from './drivers/simulated.ts';
import type { Connect, Drivers } from './engines.ts';
import { ManualJobs } from './manual-jobs.ts';
import { Deployments } from './netboot/deployments.ts';
import { bareMetalHostsOf } from './netboot/hosts.ts';
import { NO_DRIVER } from './none.ts';

interface Choice {
  lxc: Parameters<typeof lxcDriver>[0] | undefined;
  vpsDriver: 'simulated' | 'none';
  dedicatedDriver: 'simulated' | 'bmc' | 'manual' | 'none';
  provisioningHost: string;
  provisioningPort: number | undefined;
  provisioningUrl: string | undefined;
  simulatedProvisionSeconds: number;
  dataDir: string;
}

/** @throws Error if a file of the configuration cannot be read */
export function hardwareDriversOf(choice: Choice, db: Database, vault: Vault): Drivers {
  const { lxc, dataDir, simulatedProvisionSeconds: bootSeconds } = choice;
  const simulated = new SimulatedDriver({ folder: join(dataDir, 'machines'), bootSeconds });
  const vps = choice.vpsDriver === 'none' ? NO_DRIVER : simulated;
  return { VPS: lxc ? lxcDriver(lxc) : vps, DEDICATED: dedicatedDriver(choice, db, vault) ?? simulated };
}

/** Connects to engines that the operator added. Their probe is that of the environment. */
export const connectBy =
  ({ lxc }: Pick<Choice, 'lxc'>, vault: Vault): Connect =>
  ({ name, connection, clientKey }) => {
    const { clientCertificate, serverCertificate, ...rest } = connection!;
    const key = clientKey && ENGINE_KEY.open(vault, clientKey, name);
    const tls = key &&
      clientCertificate &&
      serverCertificate && { certificate: clientCertificate, key, serverCertificate };
    return lxcDriverBy({ name, ...rest, probeCommand: lxc?.probeCommand }, tls || undefined);
  };

function dedicatedDriver(choice: Choice, db: Database, vault: Vault): HardwareDriver | undefined {
  const { dedicatedDriver, provisioningHost: host, provisioningPort: port, provisioningUrl } = choice;
  if (dedicatedDriver === 'bmc')
    return new BmcDriver({
      inventory: bareMetalHostsOf(db, vault),
      store: new Deployments(db, vault, provisioningUrl ?? (port ? `http://${host}:${port}` : undefined)),
    });
  if (dedicatedDriver === 'none') return NO_DRIVER;
  return dedicatedDriver === 'manual' ? new ManualDriver(new ManualJobs(db, vault)) : undefined;
}
