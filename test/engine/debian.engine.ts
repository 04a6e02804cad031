/**
 * A real Debian on LXD, and on Incus if it is available. The service brings it by URL, and its cloud-init reads the driver's
 * configuration. It runs only if DEBIAN_IMAGE names an image (debian-image.sh). SYSTEM_IMAGES names images of other systems, such
 * as `debian-12=/var/tmp/debian-12.tar ubuntu-24.04=/var/tmp/ubuntu.tar`.
 */
import { execFileSync, spawn } from 'node:child_process';
import { createReadStream, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { serve, sha256 } from '../servers/images/source.ts';
import { newDatabaseUrl } from '../setup/database.ts';
import { atEnd } from '../setup/end.ts';
import { eventually } from '../setup/freehold.ts';
import { say } from '../setup/say.ts';
import {
  type Customer,
  login,
  newCustomer,
  type Sold,
  startWorld,
  type UploadedKey,
  uploadKey,
  type World,
} from './customer.ts';
import { FOLDER, type Lxd, SSH_OPTIONS, ssh, startIncus, startSingleLxd } from './lxd.ts';

const { INCUS_ROOT, DEBIAN_IMAGE = '', SYSTEM_IMAGES = '' } = process.env;
const OTHERS = SYSTEM_IMAGES.split(' ')
  .filter(Boolean)
  .map((pair) => pair.split('=') as [code: string, file: string]);
const BRIDGE = 'br-debian';
const HOSTNAME = 'web.example.org';
const PASSWORD = 'correct horse battery';
const MINE = 'of the customer';

beforeAll(() => {
  // The bridge of an operator's host, with IPv4, and with IPv6 through a router at a link-local address. An earlier run
  // of the cluster tests may have left its own bridge.
  const script = `ip link add ${BRIDGE} type bridge; ip addr add 10.77.0.1/24 dev ${BRIDGE}
    ip addr add fe80::1/64 dev ${BRIDGE} nodad; ip link set ${BRIDGE} up; ip -6 route replace 2001:db8:79::/56 dev ${BRIDGE}`;
  execFileSync('sh', ['-ec', script]);
});
atEnd(() => void execFileSync('sh', ['-c', `ip link del ${BRIDGE}`]));

describe('A real Debian on LXD', () => describeDebian(() => startSingleLxd('debian-lxd')));
describe.skipIf(!INCUS_ROOT)('A real Debian on Incus', () =>
  describeDebian(() => startIncus('debian-incus', INCUS_ROOT!)),
);

function describeDebian(start: () => Promise<Lxd>): void {
  let lxd: Lxd;
  let world: World;
  let customer: Customer;
  let keys: readonly [UploadedKey, UploadedKey];
  let server: Sold;

  beforeAll(async () => {
    lxd = await start();
    atEnd(() => lxd.stop());
    await lxd.call('DELETE', '/1.0/images/aliases/debian-13');
    const environment = { LXC_ENDPOINTS: `unix:${lxd.socketPath}`, LXC_POOL: 'machines', LXC_NETWORK: BRIDGE };
    world = await startWorld(await newDatabaseUrl(), environment, '10.77.0.0');
    await eventually(async () => (await world.operator('{ engines { seenAt } }')).data.engines[0]?.seenAt);
    await bring('debian-13', DEBIAN_IMAGE);
    customer = await newCustomer(world, 500);
    keys = [await uploadKey(customer, 'owner'), await uploadKey(customer, 'owner-2')];
  });

  /** Brings an image from a web server, as the guide says. */
  async function bring(code: string, file: string): Promise<void> {
    const url = await serve(atEnd, (_, response) => createReadStream(file).pipe(response));
    const input = `engine: "lxc", code: "${code}", url: "${url}", sha256: "${sha256(readFileSync(file))}"`;
    const { errors } = await world.operator(`mutation { importImage(input: {${input}}) { state } }`);
    expect(errors).toBeUndefined();
    await eventually(async () => {
      const { engineImages } = (await world.operator('{ engineImages { code state trouble } }')).data;
      const { state, trouble } = engineImages.find((one: { code: string }) => one.code === code);
      expect(trouble).toBeNull();
      return state === 'READY';
    }, 200);
  }

  const enter = (key: 0 | 1, command: string, address = server.ipv4) => login(address, keys[key].file, command, 120);
  /** Exit code 2 of cloud-init means success with deprecated settings. */
  const done = (key: 0 | 1) => enter(key, 'cloud-init status --wait || [ $? = 2 ]');

  it('accepts the uploaded key, has the ordered size, and has no password', async () => {
    const began = performance.now();
    const user_data = `#cloud-config\nwrite_files: [{path: /root/mine, content: ${MINE}}]\nusers: []\n`;
    const orderNumber = await customer.order({ ssh_key_ids: [keys[0].id], hostname: HOSTNAME, user_data });
    server = await customer.settled(orderNumber);
    expect(server).toMatchObject({ status: 'running', failure: null });
    expect(await enter(0, 'hostname; hostname -f')).toBe(`${HOSTNAME}\n${HOSTNAME}`);
    say(`logged in ${Math.round(performance.now() - began)} ms after the order`);
    expect(await done(0)).toMatch(/status: done$/);
    expect(await enter(0, 'cat /root/mine')).toBe(MINE);
    expect(await enter(0, 'getent shadow root')).toMatch(/^root:[!*]/);
    expect(await enter(0, 'sshd -T | grep ^passwordauth')).toBe('passwordauthentication no');
    expect(await ssh(server.ipv4, keys[1].file, 'true')).toBeUndefined();
  });

  it('has the two addresses of the order, no other, and is reachable by both', async () => {
    const shown = await enter(0, 'ip -o address show dev eth0 scope global');
    expect(shown.match(/inet6? \S+/g)!.sort()).toEqual([`inet ${server.ipv4}/24`, `inet6 ${server.ipv6}/64`]);
    expect(await enter(0, 'hostname', server.ipv6)).toBe(HOSTNAME);
  });

  it('keeps its data over a reboot', async () => {
    await customer.change(server.order_number, { action: 'reboot' }, 'running');
    expect(await enter(0, 'hostname; cat /root/mine')).toBe(`${HOSTNAME}\n${MINE}`);
    expect(await enter(0, 'hostname', server.ipv6)).toBe(HOSTNAME);
  });

  it('is rebuilt with another key, and with a password that works', async () => {
    const change = { action: 'rebuild', ssh_key_ids: [keys[1].id], root_password: PASSWORD };
    await customer.change(server.order_number, change, 'running');
    expect(await done(1)).toMatch(/status: done$/);
    expect(await ssh(server.ipv4, keys[0].file, 'true')).toBeUndefined();
    expect(await sshByPassword(server.ipv4, PASSWORD, 'hostname')).toBe(HOSTNAME);
    expect(await sshByPassword(server.ipv4, `${PASSWORD}s`, 'true')).toBeUndefined();
  });

  it.each(OTHERS)('is rebuilt with %s, which the service brought by URL, too', async (code, file) => {
    await bring(code, file);
    await customer.change(server.order_number, { action: 'rebuild', os: code, ssh_key_ids: [keys[1].id] }, 'running');
    expect(await done(1)).toMatch(/status: done$/);
    const release = await enter(1, 'hostname; . /etc/os-release; echo $ID-$VERSION_ID');
    expect(release).toBe(`${HOSTNAME}\n${code}`);
  });

  it('leaves nothing on the engine after its deletion', async () => {
    expect((await customer.rest('DELETE', `/v1/servers/${server.order_number}`)).status).toBe(200);
    await eventually(
      async () => ((await lxd.call('GET', '/1.0/instances?project=freehold')) as string[]).length === 0,
      60,
    );
  });
}

/** Logs in as root. @returns the output of the command, or undefined without a login */
function sshByPassword(address: string, password: string, command: string): Promise<string | undefined> {
  const askpass = join(FOLDER, 'askpass');
  writeFileSync(askpass, '#!/bin/sh\necho "$PASSWORD"\n', { mode: 0o755 });
  const options = ['-o', 'PreferredAuthentications=password', '-o', 'NumberOfPasswordPrompts=1', '-o', 'BatchMode=no'];
  return new Promise((resolve) => {
    const child = spawn('ssh', [...options, ...SSH_OPTIONS, `root@${address}`, command], {
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: 15_000,
      env: { ...process.env, SSH_ASKPASS: askpass, SSH_ASKPASS_REQUIRE: 'force', PASSWORD: password },
    });
    let output = '';
    child.stdout.on('data', (data) => (output += data));
    child.on('close', (code) => resolve(code === 0 ? output.trim() : undefined));
  });
}
