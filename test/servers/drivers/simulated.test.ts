/** The contract of drivers for the simulated driver, also behind an unreliable network. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { newOrderNumber } from '../../../entities/ids.ts';
import type { HardwareDriver, MachineSpec } from '../../../provisioning/servers/drivers/driver.ts';
import { SimulatedDriver } from '../../../provisioning/servers/drivers/simulated.ts';
import { atEnd } from '../../setup/end.ts';
import { newFolder, removeFolder } from '../../setup/spawn.ts';
import { type DriverUnderTest, describeDriver } from './contract.ts';
import { FaultyDriver } from './faulty-driver.ts';
import { describeMoves } from './moves.ts';

const folder = newFolder();
atEnd(() => removeFolder(folder));

let machines = 0;
const newSpec = (): MachineSpec => ({
  order: newOrderNumber('SRV'),
  generation: 1,
  kind: 'VPS',
  serviceCode: 'vps-1',
  region: 'zrh',
  image: 'debian-13',
  hostname: 'web.example.org',
  sshPublicKeys: ['ssh-ed25519 AAAA one', 'ssh-ed25519 AAAA two'],
  rootPassword: null,
  userData: null,
  size: { vcpus: 1, memoryMb: 2048, diskGb: 25 },
  host: null,
  network: {
    mac: '02:00:00:00:00:01',
    ipv4: { address: `192.0.2.${++machines}`, prefixLength: 24, gateway: '192.0.2.254' },
    ipv6: null,
    ipv6Prefix: null,
  },
});

const world = (name: string, over: (driver: HardwareDriver) => HardwareDriver): DriverUnderTest => ({
  name,
  newDriver: () => over(new SimulatedDriver({ folder, bootSeconds: 0.05 })),
  newSpec,
  larger: { vcpus: 2, memoryMb: 4096, diskGb: 60 },
  bootOf: async ({ order, generation }) => {
    const file = join(folder, `${order}.${generation}.json`);
    return existsSync(file) ? String(JSON.parse(readFileSync(file, 'utf8')).bootedAt) : '';
  },
  bootSeconds: 10,
});

const simulated = world('simulated', (driver) => driver);
describeDriver(simulated);
describeMoves({ ...simulated, hosts: ['here', 'there'] });

describeDriver(
  world('simulated (every call comes twice)', (driver) => {
    const faulty = new FaultyDriver(driver);
    faulty.fault = () => ({ kind: 'twice' });
    return faulty;
  }),
);
