/**
 * A room of hosts with Redfish controllers, the driver, and the listener from which the hosts boot. The test plays the
 * machines: it sends their requests to the listener. So this needs neither root nor QEMU.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Database } from '../../../entities/database/database.ts';
import { BmcDriver } from '../../../provisioning/servers/drivers/bmc/bmc.ts';
import type { BareMetalHost } from '../../../provisioning/servers/drivers/bmc/host.ts';
import type { MachineSpec } from '../../../provisioning/servers/drivers/driver.ts';
import { Netboot } from '../../../provisioning/servers/netboot/boot.ts';
import { Deployments } from '../../../provisioning/servers/netboot/deployments.ts';
import { provisioningServer } from '../../../provisioning/servers/netboot/listener.ts';
import { startRedfish } from '../../engine/metal/redfish.ts';
import { freePort, newFolder, removeFolder } from '../../setup/spawn.ts';
import { VAULT } from '../../setup/vault.ts';

export interface Rack {
  box: BareMetalHost;
  /** The commands for its power: `on pxe`, `on disk`, `off`, `soft`. */
  journal: string[];
  isOn(): boolean;
  /** Sets the power by hand. */
  turnOff(): void;
  connect(): Promise<void>;
  /** Makes its controller unreachable. */
  disconnect(): Promise<void>;
}

export async function newRack(name: string, number: number, delayMs = 10): Promise<Rack> {
  const port = await freePort();
  const journal: string[] = [];
  const now = { on: false, boot: 'disk' };
  const set = (what: string, value: string) => {
    if (what === 'boot') now.boot = value;
    else if (what === 'power' && value === '1') {
      journal.push(`on ${now.boot}`);
      Object.assign(now, { on: true, boot: 'disk' });
    } else {
      journal.push(what === 'shutdown' ? 'soft' : 'off');
      now.on = false;
    }
    return '';
  };
  const chassis = (operation: string, what: string, value = '') =>
    operation === 'get' ? `power:${now.on ? 1 : 0}` : set(what, value);
  let controller: { stop(): Promise<void> } | undefined;
  const connect = async () => {
    controller = await startRedfish({ port, user: 'u', password: 'p', chassis, delayMs });
  };
  await connect();
  const bmc = { protocol: 'redfish', address: `http://127.0.0.1:${port}`, user: 'u', password: 'p' } as const;
  return {
    box: {
      name,
      region: 'ams',
      serviceCode: 'ded-1',
      bmc,
      mac: `52:54:00:00:01:0${number}`,
      disk: '/dev/vda',
      size: { vcpus: 16, memoryMb: 65_536, diskGb: 1920 },
    },
    journal,
    isOn: () => now.on,
    turnOff: () => {
      now.on = false;
    },
    connect,
    disconnect: async () => {
      await controller?.stop();
      controller = undefined;
    },
  };
}

/** The requests of a machine to the listener. */
export function machineOf(url: string, mac: string) {
  let base = '';
  const script = async () => {
    const text = await fetch(`${url}/boot/${mac.replaceAll(':', '-')}`).then((response) => response.text());
    base = /fh_base=(\S+)/.exec(text)?.[1] ?? base;
    return text;
  };
  const get = (file: string) => fetch(`${base}/${file}`);
  const tell = async (news: string, at = base) => (await fetch(`${at}/${news}`, { method: 'POST' })).status;
  return {
    script,
    get,
    tell,
    base: () => base,
    /** The URL at which the installed system phones home. */
    bootedAt: async () => /url: "(.*)\/booted"/.exec(await (await get('vendor-data')).text())![1]!,
    /** Boots from the network, installs, and boots the new system. */
    async install(driver: BmcDriver, spec: MachineSpec) {
      await script();
      const system = await this.bootedAt();
      await tell('installed');
      await driver.observe(spec, NEVER);
      await tell('booted', system);
    },
    async wipe() {
      await script();
      return tell('wiped');
    },
  };
}

export const NEVER = new AbortController().signal;

export const specOf = (order: string, more: Partial<MachineSpec> = {}): MachineSpec => ({
  order,
  generation: 1,
  kind: 'DEDICATED',
  serviceCode: 'ded-1',
  region: 'ams',
  image: 'debian-13',
  hostname: 'metal',
  sshPublicKeys: ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE6bMLcyJEJrdW8aHwvnwdQbTPLxqlfAGNFLEpJhJoZk'],
  rootPassword: null,
  userData: '#cloud-config\nhostname: "secret of a customer"\n',
  size: { vcpus: 16, memoryMb: 65_536, diskGb: 1920 },
  host: null,
  network: { mac: '02:00:00:00:00:01', ipv4: null, ipv6: null, ipv6Prefix: null },
  ...more,
});

/** The listener and the driver of one process over a database. */
export async function openRoom(db: Database, racks: Rack[], onEnd: (end: () => Promise<void>) => void) {
  const folder = newFolder();
  mkdirSync(join(folder, 'deeper'));
  for (const name of ['vmlinuz', 'initrd.img', 'debian-13.img.gz']) writeFileSync(join(folder, name), `it is ${name}`);
  const faults: unknown[] = [];
  const server = provisioningServer({
    netboot: new Netboot(db, VAULT),
    folder,
    onError: (fault) => void faults.push(fault),
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const newDriver = () =>
    new BmcDriver({
      inventory: async () => racks.map(({ box }) => box),
      store: new Deployments(db, VAULT),
      graceSeconds: 0.2,
      powerSeconds: 2,
      pollSeconds: 0.02,
    });
  onEnd(async () => {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
    for (const rack of racks) await rack.disconnect();
    removeFolder(folder);
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, faults, driver: newDriver(), newDriver, machine: ({ box }: Rack) => machineOf(url, box.mac) };
}
