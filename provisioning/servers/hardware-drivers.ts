/**
 * The hardware drivers of the configuration. Machines of a kind are simulated, unless it names a driver or none. A driver
 * loads when something needs it.
 */
import { join } from 'node:path';
import type { Database } from '../../entities/database/database.ts';
import type { Vault } from '../../entities/secrets.ts';
import { ENGINE_KEY } from '../../entities/servers/engine.ts';
import type { HardwareDriver } from './drivers/driver.ts';
import type { lxcDriver } from './drivers/lxc/settings.ts';
import { SimulatedDriver } from './drivers/simulated.ts';
import type { Connect, Drivers } from './engines.ts';
import { NO_DRIVER } from './none.ts';

const lxcDrivers = () => import('./drivers/lxc/settings.ts');

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
export async function hardwareDriversOf(choice: Choice, db: Database, vault: Vault): Promise<Drivers> {
  const { lxc, dataDir, simulatedProvisionSeconds: bootSeconds } = choice;
  const simulated = new SimulatedDriver({ folder: join(dataDir, 'machines'), bootSeconds });
  const vps = choice.vpsDriver === 'none' ? NO_DRIVER : simulated;
  return {
    VPS: lxc ? (await lxcDrivers()).lxcDriver(lxc) : vps,
    DEDICATED: (await dedicatedDriver(choice, db, vault)) ?? simulated,
  };
}

/** Connects to engines that the operator added. Their probe is that of the environment. */
export const connectBy =
  ({ lxc }: Pick<Choice, 'lxc'>, vault: Vault): Connect =>
  async ({ name, connection, clientKey }) => {
    const { clientCertificate, serverCertificate, ...rest } = connection!;
    const key = clientKey && ENGINE_KEY.open(vault, clientKey, name);
    const tls = key &&
      clientCertificate &&
      serverCertificate && { certificate: clientCertificate, key, serverCertificate };
    return (await lxcDrivers()).lxcDriverBy({ name, ...rest, probeCommand: lxc?.probeCommand }, tls || undefined);
  };

async function dedicatedDriver(choice: Choice, db: Database, vault: Vault): Promise<HardwareDriver | undefined> {
  const { dedicatedDriver, provisioningHost: host, provisioningPort: port, provisioningUrl } = choice;
  if (dedicatedDriver === 'bmc') {
    const [{ BmcDriver }, { bareMetalHostsOf }, { Deployments }] = await Promise.all([
      import('./drivers/bmc/bmc.ts'),
      import('./netboot/hosts.ts'),
      import('./netboot/deployments.ts'),
    ]);
    return new BmcDriver({
      inventory: bareMetalHostsOf(db, vault),
      store: new Deployments(db, vault, provisioningUrl ?? (port ? `http://${host}:${port}` : undefined)),
    });
  }
  if (dedicatedDriver === 'none') return NO_DRIVER;
  if (dedicatedDriver !== 'manual') return undefined;
  const [{ ManualDriver }, { ManualJobs }] = await Promise.all([
    import('./drivers/manual.ts'),
    import('./manual-jobs.ts'),
  ]);
  return new ManualDriver(new ManualJobs(db, vault));
}
