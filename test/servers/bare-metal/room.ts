/**
 * A room of hosts with Redfish controllers, the driver, and the listener from which the hosts boot. The test plays the
 * machines: it sends their requests to the listener. So this needs neither root nor QEMU.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Database } from '../../../entities/database/database.ts';
import { netbootListener } from '../../../facades/netboot/listener.ts';
import { BmcDriver } from '../../../provisioning/servers/drivers/bmc/bmc.ts';
import type { BareMetalHost } from '../../../provisioning/servers/drivers/bmc/host.ts';
import type { MachineSpec } from '../../../provisioning/servers/drivers/driver.ts';
import { netbootAnswers } from '../../../provisioning/servers/netboot/answers.ts';
import { Netboot } from '../../../provisioning/servers/netboot/boot.ts';
import { Deployments } from '../../../provisioning/servers/netboot/deployments.ts';
import { signatureOf } from '../../../provisioning/servers/netboot/tokens.ts';
import { startRedfish, type TestUser } from '../../engine/metal/redfish.ts';
import { atEnd } from '../../setup/end.ts';
import { freePort, newFolder, type OnEnd, removeFolder } from '../../setup/spawn.ts';
import { VAULT } from '../../setup/vault.ts';

export interface Rack {
  box: BareMetalHost;
  /** The commands for its power: `on pxe`, `on disk`, `off`, `soft`. */
  journal: string[];
  isOn(): boolean;
  /** The URLs of images that its controller got; undefined: it ejected one. */
  images: (string | undefined)[];
  /** The users of its controller. */
  users: TestUser[];
  /** Whether its controller lists them. */
  listsUsers: boolean;
  /** Sets the power by hand. */
  turnOff(): void;
  connect(): Promise<void>;
  /** Makes its controller unreachable. */
  disconnect(): Promise<void>;
}

export async function newRack(
  name: string,
  number: number,
  { delayMs = 10, boot = 'NETWORK' }: { delayMs?: number; boot?: BareMetalHost['boot'] } = {},
): Promise<Rack> {
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
  const users: TestUser[] = [{ name: 'u', enabled: true }];
  const images: (string | undefined)[] = [];
  const insert = async (image: string | undefined) => void images.push(image);
  const lists = { users: true };
  let controller: { stop(): Promise<void> } | undefined;
  const connect = async () => {
    controller = await startRedfish({
      port,
      user: 'u',
      password: 'p',
      chassis,
      users,
      listsUsers: () => lists.users,
      delayMs,
      ...(boot === 'MEDIUM' && { insert }),
    });
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
      boot,
      size: { vcpus: 16, memoryMb: 65_536, diskGb: 1920 },
    },
    journal,
    users,
    get listsUsers() {
      return lists.users;
    },
    set listsUsers(listed) {
      lists.users = listed;
    },
    images,
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

/** The files of an archive (cpio, newc), without their folder. */
function filesOf(archive: Buffer): Record<string, string> {
  const files: Record<string, string> = {};
  for (let at = 0; at + 110 <= archive.length; ) {
    const field = (index: number) =>
      Number.parseInt(archive.toString('latin1', at + 6 + index * 8, at + 14 + index * 8), 16);
    const [size, nameLength] = [field(6), field(11)];
    const name = archive.toString('latin1', at + 110, at + 109 + nameLength);
    const from = (at + 110 + nameLength + 3) & ~3;
    if (name === 'TRAILER!!!') return files;
    files[name.replace('job/', '')] = archive.toString('utf8', from, from + size);
    at = (from + size + 3) & ~3;
  }
  throw new Error('The archive has no end.');
}

/** The requests of a machine to the listener. */
export function machineOf(url: string, mac: string) {
  let files: Record<string, string> = {};
  let archive = '';
  const setting = (name: string) => new RegExp(`^fh_${name}='(.*)'$`, 'm').exec(files.settings ?? '')?.[1] ?? '';
  const load = async (at: string) => {
    archive = at;
    if (at) files = filesOf(Buffer.from(await (await fetch(`${at}/job.cpio`)).arrayBuffer()));
  };
  /** Loads the script, and the job that it names. */
  const script = async () => {
    const text = await fetch(`${url}/boot/${mac.replaceAll(':', '-')}`).then((response) => response.text());
    await load(/(\S+)\/job\.cpio/.exec(text)?.[1] ?? '');
    return text;
  };
  const post = async (at: string, text = '') => (await fetch(at, { method: 'POST', body: text })).status;
  /** Sends signed news, or those of a system to its own URL. */
  const tell = async (news: string, text = '') =>
    post(`${setting('base')}/${signatureOf(setting('key'), `${news}\n${text}`)}/${news}`, text);
  return {
    script,
    load,
    setting,
    tell,
    file: (name: string) => files[name] ?? '',
    /** The URL of the job, without the name of a file. */
    archive: () => archive,
    /** Reports to the URL at which the installed system phones home. */
    boot: (home: string) => post(`${home}/booted`, 'instance_id=dep'),
    bootedAt: () => /url: "(.*)\/booted"/.exec(files['vendor-data']!)![1]!,
    /** Boots from the network, installs, and boots the new system. */
    async install(driver: BmcDriver, spec: MachineSpec) {
      await script();
      await tell('installed');
      await driver.observe(spec, NEVER);
      await post(`${/url: "(.*)\/booted"/.exec(files['vendor-data']!)![1]!}/booted`);
    },
    /** Reports a wipe with a line for each disk. */
    async wipe() {
      await script();
      return tell(
        'wiped',
        setting('disks')
          .split(' ')
          .map((disk) => `${disk} 1000 bytes`)
          .join('\n'),
      );
    },
  };
}

/** Writes the sums of all files in a folder for network boot. */
export function writeSums(folder: string): void {
  const sums = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(
      ({ name }) =>
        `${createHash('sha256')
          .update(readFileSync(join(folder, name)))
          .digest('hex')}  ${name}\n`,
    );
  writeFileSync(join(folder, 'SHA256SUMS'), sums.join(''));
}

export const DISKS = ['wwn-0x5000c500a1b2c3d4', 'S4EWNX0R'];

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
export async function openRoom(db: Database, racks: Rack[], onEnd: OnEnd = atEnd) {
  const folder = newFolder();
  mkdirSync(join(folder, 'deeper'));
  for (const name of ['vmlinuz', 'initrd.img', 'debian-13.img.gz']) writeFileSync(join(folder, name), `it is ${name}`);
  writeSums(folder);
  // The listener reads these hosts; the driver of the tests has its own inventory.
  for (const { box } of racks)
    await db.query(
      `insert into host (name, region_code, kind, driver, service_code, vcpus, memory_mb, disk_gb, disks, boot_network_isolated)
       values ($1, $2, 'DEDICATED', 'bmc', $3, 16, 65536, 1920, $4, $5) on conflict do nothing`,
      [box.name, box.region, box.serviceCode, DISKS, box.boot === 'NETWORK'],
    );
  const faults: unknown[] = [];
  const onError = (fault: unknown) => void faults.push(fault);
  const app = netbootListener({ boots: netbootAnswers({ netboot: new Netboot(db, VAULT), folder, onError }), onError });
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  const { server } = app;
  const newDriver = () =>
    new BmcDriver({
      inventory: async () => racks.map(({ box }) => box),
      store: new Deployments(db, VAULT, url),
      graceSeconds: 0.2,
      powerSeconds: 2,
      pollSeconds: 0.02,
    });
  onEnd(async () => {
    server.closeAllConnections();
    await app.close();
    for (const rack of racks) await rack.disconnect();
    removeFolder(folder);
  });
  return {
    url,
    server,
    folder,
    faults,
    driver: newDriver(),
    newDriver,
    machine: ({ box }: Rack) => machineOf(url, box.mac),
  };
}
