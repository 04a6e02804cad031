/**
 * Two tenants with root on a real LXD, and on Incus if it is available. One tries to reach and to harm the other, the host and mail servers, on both kinds of
 * network. The test prints the table of attempts.
 */
import { execFileSync, spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';
import { beforeAll, describe, expect, it } from 'vitest';
import type { MachineSpec } from '../../provisioning/servers/drivers/driver.ts';
import { nameOf } from '../../provisioning/servers/drivers/lxc/instance.ts';
import { LxcDriver } from '../../provisioning/servers/drivers/lxc/lxc.ts';
import { eventually } from '../setup/freehold.ts';
import { say } from '../setup/say.ts';
import { type Attempt, exhaustions, forgeries, type Tenants, ways } from './attempts.ts';
import { followGuide } from './guide.ts';
import { FOLDER, type Lxd, newKey, ssh, startIncus, startSingleLxd } from './lxd.ts';
import { newSpec } from './machine.ts';

const { INCUS_ROOT } = process.env;
const never = AbortSignal.timeout(900_000);
const PORT_MBPS = 80;
const SIZE = { vcpus: 1, memoryMb: 128, diskGb: 1 };
/** Another address of the host, and a host in the world behind it. */
const [UPLINK, WORLD] = ['198.51.100.1', '198.51.100.2'];

const sh = (script: string) => execFileSync('sh', ['-ec', script], { encoding: 'utf8' });
/** Answers on ports of the world, and sends zeros on port 81. */
const SERVER = `for (const port of [25, 80]) require('net').createServer((s) => s.end('world')).listen(port);
  require('net').createServer((s) => { s.on('error', () => {}); s.end(Buffer.alloc(24e6)) }).listen(81)
  require('net').createServer((s) => { s.on('error', () => {}); s.resume() }).listen(82)`;

let lxd: Lxd;
describe('On LXD', () => describeTenants('lxd', () => startSingleLxd('isolation')));
describe.skipIf(!INCUS_ROOT)('On Incus', () =>
  describeTenants('incus', () => startIncus('isolation-incus', INCUS_ROOT!)),
);

function describeTenants(engine: string, start: () => Promise<Lxd>): void {
  const key = newKey(`tenant-${engine}`);
  beforeAll(async () => {
    lxd = await start();
    await lxd.call('PATCH', '/1.0', { config: { 'core.https_address': ':8443' } });
    const end = openWorld();
    return () => {
      end();
      return lxd.stop();
    };
  });

  describe("Two tenants on the engine's own bridge", () =>
    // The operator gave the bridge IPv6, although machines have none there.
    tenants(key, 'machines', '10.79.0', [ways, forgeries, exhaustions], () =>
      lxd.call('PATCH', '/1.0/networks/machines', { config: { 'ipv6.address': 'fd42:79::1/64' } }),
    ));

  describe('Two tenants on a bridge of the host', () =>
    tenants(key, 'br-sell', '10.76.0', [ways, forgeries], async () => {
      sh(`ip link del br-sell 2>/dev/null || true; ip link add br-sell type bridge; ip addr add 10.76.0.1/24 dev br-sell
        ip addr add fe80::1/64 dev br-sell nodad; ip link set br-sell up; ip -6 route replace 2001:db8:79::/56 dev br-sell`);
      await lxd.call('PATCH', '/1.0/projects/freehold', { config: { 'restricted.devices.nic': 'allow' } });
      followGuide('table bridge freehold', lxd.folder, {
        '203.0.113': '10.76.0',
        br0: 'br-sell',
        '/etc/': `${FOLDER}/`,
      });
    }));
}

/** Makes a host in the world behind the engine's. @returns a function that removes it */
function openWorld(): () => void {
  sh(`ip netns add world; ip link add uplink0 type veth peer name eth0 netns world; ip addr add ${UPLINK}/24 dev uplink0
    ip link set uplink0 up; ip -n world addr add ${WORLD}/24 dev eth0; ip -n world link set eth0 up; ip -n world link set lo up
    ip -n world route add default via ${UPLINK}; sysctl -qw net.ipv4.ip_forward=1`);
  const world = spawn('ip', ['netns', 'exec', 'world', process.execPath, '-e', SERVER], { stdio: 'ignore' });
  const host = createServer((socket) => socket.end('host')).listen(9100);
  const datagrams = (['udp4', 'udp6'] as const).map((type) => {
    const socket = createSocket({ type, ipv6Only: type === 'udp6' });
    return socket.on('message', (_, { port, address }) => socket.send('host', port, address)).bind(9100);
  });
  return () => {
    for (const socket of datagrams) socket.close();
    world.kill();
    host.close();
    sh('ip netns del world');
  };
}

function tenants(
  key: ReturnType<typeof newKey>,
  network: string,
  prefix: string,
  kinds: readonly ((tenants: Tenants) => Attempt[])[],
  prepare: () => unknown,
): void {
  const specOf = (n: number): MachineSpec => {
    const spec = newSpec([key.publicKey]);
    const ipv4 = { address: `${prefix}.${n}`, prefixLength: 24, gateway: `${prefix}.1` };
    const given = `2001:db8:79:${n}::`;
    const ipv6 = { address: `${given}1`, prefixLength: 64, gateway: 'fe80::1' };
    const traits = { virtualization: 'container', nesting: false, portMbps: PORT_MBPS } as const;
    return {
      ...spec,
      size: SIZE,
      traits,
      userData: `secret-${n}`,
      network: { ...spec.network, ipv4, ipv6, ipv6Prefix: `${given}/64` },
    };
  };
  const [mine, other] = [specOf(30), specOf(31)];
  let attempts: Attempt[];

  beforeAll(async () => {
    await prepare();
    const driver = new LxcDriver({
      ...{ endpoints: [{ socketPath: lxd.socketPath }], project: 'freehold', pool: 'machines', network },
      nameservers: [],
    });
    await driver.check(never);
    for (const spec of [mine, other]) await driver.create(spec, never);
    await eventually(async () => (await ssh(other.network.ipv4!.address, key.file, 'true')) !== undefined);
    arm(nameOf(mine));
    const run = (spec: MachineSpec) => (script: string) => within(nameOf(spec), script);
    const tenants: Tenants = {
      mine,
      other,
      run: run(mine),
      runOther: run(other),
      host: [`${prefix}.1`, UPLINK],
      world: WORLD,
      portMbps: PORT_MBPS,
    };
    attempts = kinds.flatMap((kind) => kind(tenants));
    return async () => {
      for (const spec of [mine, other]) await driver.destroy(spec, never);
    };
  });

  it('reach the world, and the worker reaches them', async () => {
    expect(await within(nameOf(mine), `nc -w 3 ${WORLD} 80 </dev/null`)).toContain('world');
    await eventually(async () => (await ssh(mine.network.ipv4!.address, key.file, 'echo in')) === 'in');
  });

  it('fail in all attempts against each other, the host and their limits', { timeout: 400_000 }, async () => {
    const table: [string, string][] = [];
    for (const { name, attempt } of attempts) table.push([name, await attempt()]);
    say(`\nAttempts of a tenant with root on ${network}:`);
    for (const [name, end] of table) say(`  ${name.padEnd(58)} ${end}`);
    expect(table.filter(([, end]) => !/^(refused|limited|not tried)/.test(end))).toEqual([]);
    // The other has noticed nothing.
    expect(await ssh(other.network.ipv4!.address, key.file, 'echo in')).toBe('in');
  });
}

/** Runs a script as root of a machine. @returns its output, also of a failed one */
function within(instance: string, script: string): Promise<string> {
  const args = [
    'exec',
    instance,
    '--project',
    'freehold',
    '--',
    '/bin/sh',
    '-c',
    `export PATH=/bin:/usr/bin LC_ALL=C; busybox --install -s /bin 2>/dev/null; ${script}`,
  ];
  return new Promise((resolve) => {
    const child = spawn('lxc', args, {
      env: { ...process.env, LXD_DIR: lxd.folder },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 60_000,
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += data));
    child.on('close', () => resolve(output));
  });
}

/** Gives a machine perl, which can send any packet. Incus pushes no file through the link /bin. */
function arm(instance: string): void {
  const libraries = sh("ldd /usr/bin/perl | grep -o '/[^ ]*'").trim().split('\n');
  const files = ['/usr/bin/perl', ...libraries].map((file) => file.slice(1));
  const archive = execFileSync('tar', ['-chC', '/', ...files], { maxBuffer: 64e6 });
  const unpack = ['exec', instance, '--project', 'freehold', '--', '/bin/busybox', 'tar', '-xC', '/'];
  execFileSync('lxc', unpack, { env: { ...process.env, LXD_DIR: lxd.folder }, input: archive });
}
