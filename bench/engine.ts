/**
 * `npm run bench:engine`: compares an order through the platform, until SSH login, with the engine alone.
 * Both take turns on a private LXD. A tiny image shows the platform's own time best. DEBIAN_IMAGE (test/engine/debian-image.sh)
 * adds the machine that a customer gets. VM_IMAGE (test/engine/vm/image.sh) adds virtual machines, under emulation. It needs
 * root, and prints a message if it lacks it.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { startEmbeddedPostgres } from '../entities/database/embedded/postgres.ts';
import type { MachineSpec } from '../provisioning/servers/drivers/driver.ts';
import { instanceOf } from '../provisioning/servers/drivers/lxc/instance.ts';
import { macOf } from '../provisioning/servers/placement/spec.ts';
import { type Customer, newCustomer, startWorld } from '../test/engine/customer.ts';
import { importImage, type Lxd, newKey, prepared, ssh, startLxd } from '../test/engine/lxd.ts';
import { offerVirtual, withImage, withinEmulation } from '../test/engine/vm/engines.ts';
import { eventually } from '../test/setup/freehold.ts';
import { newFolder, removeFolder } from '../test/setup/spawn.ts';
import { median, print } from './figure.ts';

const BAR = 1.15;
const KEY = 'bench';
const { DEBIAN_IMAGE } = process.env;
/** The tiny image has the code of Debian 13 already. */
const DEBIAN_CODE = 'debian-12';

/** The machines of a tier. */
interface Kind {
  name: string;
  serviceCode: string;
  image: string;
  traits: NonNullable<MachineSpec['traits']>;
  size: MachineSpec['size'];
  rounds: number;
}
const CONTAINER: Kind = {
  ...{
    name: 'a container of a tiny image',
    serviceCode: 'vps-1',
    image: 'debian-13',
    rounds: 9,
    size: { vcpus: 1, memoryMb: 2048, diskGb: 25 },
  },
  traits: { virtualization: 'container', nesting: false, portMbps: 1000 },
};
const DEBIAN: Kind = { ...CONTAINER, name: 'a container of Debian 13', image: DEBIAN_CODE, rounds: 7 };
const VIRTUAL: Kind = {
  ...{
    name: 'a virtual machine',
    serviceCode: 'kvm-1',
    image: 'debian-13',
    rounds: 5,
    size: { vcpus: 1, memoryMb: 256, diskGb: 1 },
  },
  traits: { virtualization: 'kvm', nesting: false, portMbps: 1000 },
};

if (process.env.ENGINE_FOLDER) await bench();
else {
  const run = join(import.meta.dirname, '../test/engine/run.ts');
  process.exitCode = spawnSync(process.execPath, [run, import.meta.filename], { stdio: 'inherit' }).status ?? 1;
}

async function bench() {
  const ends: (() => unknown)[] = [];
  const folder = newFolder();
  ends.push(() => removeFolder(folder));
  try {
    const postgres = await startEmbeddedPostgres(folder);
    ends.push(postgres.stop);
    const isVirtual = Boolean(process.env.VM_IMAGE);
    const lxd = await startLxd('bench', isVirtual ? withinEmulation('bench') : []).then(prepared);
    if (isVirtual) await withImage(lxd);
    if (DEBIAN_IMAGE) await importImage(lxd, [DEBIAN_CODE], DEBIAN_IMAGE);
    // The kernel repeats its query for an absent neighbour only each second, which would hide the measured time.
    writeFileSync('/proc/sys/net/ipv4/neigh/machines/retrans_time_ms', '20');
    const environment = {
      MIGRATION_DATABASE_URL: postgres.ownerUrl,
      LXC_ENDPOINTS: `unix:${lxd.socketPath}`,
      LXC_POOL: 'machines',
      LXC_NETWORK: 'machines',
    };
    const world = await startWorld(postgres.url, environment, '10.79.0.0', (end) => ends.push(end));
    const customer = await newCustomer(world, 500);
    const key = newKey(KEY);
    await customer.upload(key.publicKey);
    await compare(CONTAINER, lxd, customer, key);
    if (DEBIAN_IMAGE) await compare(DEBIAN, lxd, customer, key);
    if (isVirtual) {
      await offerVirtual(world);
      await compare(VIRTUAL, lxd, customer, key);
    }
  } finally {
    for (const end of ends.reverse()) await end();
  }
  process.exit(0);
}

interface Key {
  file: string;
  publicKey: string;
}

/** Prints the time of an order to that of the engine alone. */
async function compare(kind: Kind, lxd: Lxd, customer: Customer, key: Key): Promise<void> {
  const [engine, platform]: [number[], number[]] = [[], []];
  for (let round = -1; round < kind.rounds; round++) {
    const [alone, through] = [
      await engineAlone(kind, lxd, key, round),
      await throughPlatform(kind, lxd, customer, key.file),
    ];
    if (round < 0) continue; // warm-up
    engine.push(alone);
    platform.push(through);
  }
  const seconds = (values: number[]) => `${(median(values) / 1000).toFixed(2)} s`;
  console.log(
    `\nTo an SSH login of ${kind.name}, median of ${kind.rounds}: the engine alone ${seconds(engine)}, an order ${seconds(platform)}.`,
  );
  print({
    name: `order of ${kind.name} to SSH login, to the engine alone`,
    ratio: median(platform) / median(engine),
    bar: BAR,
  });
}

/** Makes and starts an instance as the driver does. @returns milliseconds until a login */
async function engineAlone(
  { serviceCode, image, traits, size }: Kind,
  lxd: Lxd,
  key: Key,
  round: number,
): Promise<number> {
  const machine = { order: `SRV-BENCH${round + 1}`, generation: 1 };
  const address = `10.79.0.${20 + round}`;
  const spec = {
    ...machine,
    kind: 'VPS',
    serviceCode,
    traits,
    region: 'zrh',
    image,
    hostname: 'bench',
    sshPublicKeys: [key.publicKey],
    rootPassword: null,
    userData: null,
    size,
    host: null,
    network: {
      mac: macOf(machine),
      ipv4: { address, prefixLength: 24, gateway: '10.79.0.1' },
      ipv6: null,
      ipv6Prefix: null,
    },
  } as const;
  const network = { name: 'machines', managed: true, ipv6: false, config: {} };
  const given = { ...spec, sshPublicKeys: [...spec.sshPublicKeys] };
  const name = `bench-${round + 1}`;
  const began = performance.now();
  const place = { network, pool: 'machines', nameservers: [], polices: false };
  await lxd.call('POST', '/1.0/instances', { ...instanceOf(given, place), name });
  await lxd.call('PUT', `/1.0/instances/${name}/state`, { action: 'start' });
  await login(address, key.file);
  const took = performance.now() - began;
  await lxd.call('PUT', `/1.0/instances/${name}/state`, { action: 'stop', force: true });
  await lxd.call('DELETE', `/1.0/instances/${name}`);
  return took;
}

/** Orders a server over REST. @returns milliseconds until a login */
async function throughPlatform(
  { serviceCode, image: os }: Kind,
  lxd: Lxd,
  customer: Customer,
  keyFile: string,
): Promise<number> {
  const began = performance.now();
  const orderNumber = await customer.order({ service_code: serviceCode, os });
  const address = await eventually(async () => {
    const { body } = await customer.rest('GET', `/v1/servers/${orderNumber}?wait_for=running`);
    return body.status === 'running' && (body.ipv4 as string);
  });
  await login(address, keyFile);
  const took = performance.now() - began;
  assert.equal((await customer.rest('DELETE', `/v1/servers/${orderNumber}`)).status, 200);
  await eventually(
    async () => ((await lxd.call('GET', '/1.0/instances?project=freehold')) as string[]).length === 0,
    60,
  );
  return took;
}

/** Retries the connection at short intervals, and then logs in. */
async function login(address: string, keyFile: string): Promise<void> {
  await eventually(() => answers(address), 60);
  // cloud-init restarts the SSH server of Debian once, for some milliseconds.
  await eventually(async () => (await ssh(address, keyFile, 'echo in')) === 'in', 60);
}

function answers(address: string): Promise<boolean> {
  const socket = connect({ host: address, port: 22 });
  return new Promise<boolean>((resolve) => {
    const end = (answered: boolean) => {
      resolve(answered);
      socket.destroy();
    };
    socket.setTimeout(1000, () => end(false));
    socket.on('data', () => end(true)).on('error', () => end(false));
  });
}
