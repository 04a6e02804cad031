/** A customer's VPS in a cluster of three with one dead member. The service uses HTTPS with pinned certificates. */
import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import type { MachineSpec } from '../../provisioning/servers/drivers/driver.ts';
import { endpointOf } from '../../provisioning/servers/drivers/lxc/endpoint.ts';
import { LxcDriver } from '../../provisioning/servers/drivers/lxc/lxc.ts';
import { codeOf } from '../servers/drivers/contract.ts';
import { describeMoves } from '../servers/drivers/moves.ts';
import { newDatabaseUrl } from '../setup/database.ts';
import { eventually } from '../setup/freehold.ts';
import { say } from '../setup/say.ts';
import { type Cluster, deleteCopies, operatorOf, startCluster } from './cluster.ts';
import {
  type Customer,
  heldAddresses,
  login,
  lookAround,
  newCustomer,
  type Sold,
  startWorld,
  type UploadedKey,
  uploadKey,
  type World,
} from './customer.ts';
import { runGuide } from './guide.ts';
import { describeJourney } from './journey.ts';
import { newKey, ssh } from './lxd.ts';
import { newSpec } from './machine.ts';

let cluster: Cluster;
let world: World;
let customer: Customer;
let keys: readonly [UploadedKey, UploadedKey];
let driver: LxcDriver;
/** This driver pins a certificate that the engine does not have. */
let deceived: LxcDriver;
/** A driver for each member alone. */
let meters: LxcDriver[];
const never = new AbortController().signal;

beforeAll(async () => {
  cluster = await startCluster();
  const { files, endpoints } = cluster;
  const environment = {
    LXC_ENDPOINTS: endpoints.join(','),
    LXC_CLIENT_CERT_FILE: files.certificate,
    LXC_CLIENT_KEY_FILE: files.key,
    LXC_SERVER_CERT_FILE: files.server,
    LXC_POOL: 'local',
    LXC_NETWORK: 'br0',
    POLL_SECONDS: '0.2',
  };
  world = await startWorld(await newDatabaseUrl(), environment, '10.78.0.0');
  runGuide(world.service, 'for host in');
  const read = (file: string) => readFileSync(file, 'utf8');
  const tls = { certificate: read(files.certificate), key: read(files.key), serverCertificate: read(files.server) };
  const place = { project: 'freehold', pool: 'local', network: 'br0', nameservers: [] };
  driver = new LxcDriver({ ...place, endpoints: endpoints.map((text) => endpointOf(text, tls)) });
  meters = endpoints.map((text) => new LxcDriver({ ...place, endpoints: [endpointOf(text, tls)] }));
  const another = { ...tls, serverCertificate: tls.certificate };
  deceived = new LxcDriver({ ...place, endpoints: endpoints.map((text) => endpointOf(text, another)) });
  customer = await newCustomer(world, 500);
  keys = [await uploadKey(customer, 'cluster'), await uploadKey(customer, 'cluster-2')];
});

const sellOn = (...names: string[]) => operatorOf(world).sellOn(...names);
const hosts = () => operatorOf(world).hosts();
const stateOf = async (name: string) => (await hosts()).find((host) => host.name === name)!.state;

const order = () => customer.order({ ssh_key_ids: [keys[0].id] });
const enter = ({ ipv4 }: Sold) => login(ipv4, keys[0].file, 'echo in');
/** Orders a server and logs in. */
async function sell(): Promise<Sold> {
  const server = await customer.settled(await order(), 200);
  expect(server.status).toBe('running');
  expect(await enter(server)).toBe('in');
  return server;
}
/** Machines of any generation that the engine reports for the order. */
const observe = async (order: string) =>
  (await driver.list(never).catch(() => [])).filter((seen) => seen.order === order);
const statusOf = async (orderNumber: string) => {
  const { status, body } = await customer.rest('GET', `/v1/servers/${orderNumber}`);
  return status === 404 ? 'deleted' : (body.status as string);
};
/** All instances that the living members know, including those on the dead member. */
const instances = async () => (await cluster.members[1]!.call('GET', '/1.0/instances?project=freehold')) as string[];

/** Two servers on the member that dies. */
let [staying, leaving]: Sold[] = [];

describe('A cluster of three', () => {
  it('reports its members, and makes machines only on active hosts', async () => {
    expect((await driver.capacity(never)).map(({ name, state }) => `${name} ${state}`).sort()).toEqual([
      'n1 online',
      'n2 online',
      'n3 online',
    ]);
    await sellOn('n1');
    [staying, leaving] = await Promise.all([sell(), sell()]);
    expect((await driver.list(never)).map(({ host }) => host)).toEqual(['n1', 'n1']);
  });

  it('shows each member the counters of all machines', async () => {
    for (const meter of meters) {
      const readings = await meter.meter(never);
      expect(readings.map(({ epoch }) => epoch.split(' ')[1])).toEqual(['n1', 'n1']);
      for (const { sentBytes, cpuNs } of readings) expect(Math.min(sentBytes!, cpuNs!)).toBeGreaterThan(0);
    }
  });

  it('is used only with the pinned certificate', async () => {
    expect(await driver.reachable('zrh', never)).toBe(true);
    expect(await codeOf(deceived.list(never))).toBe('unreachable');
  });

  it('reports the running machines of a killed member as unknown, not absent', async () => {
    const before = await customer.balance();
    const interrupted = await order();
    await eventually(async () => (await observe(interrupted)).length > 0);
    await cluster.members[0]!.kill();
    for (let look = 0; look < 3; look++) {
      const seen = await driver
        .observe({ order: staying!.order_number, generation: 1 }, never)
        .catch(({ code }) => ({ phase: code }));
      expect(seen.phase).toMatch(/^(unknown|unreachable)$/);
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
    expect(await ssh(staying!.ipv4, keys[0].file, 'echo in')).toBe('in');
    const listed = await eventually(async () => (await observe(staying!.order_number))[0]);
    expect(listed).toMatchObject({ phase: 'unknown', host: 'n1' });

    // The engine may have made its machine in time. Otherwise it waits for the member, and the customer may give it up.
    const { body } = await customer.rest('GET', `/v1/servers/${interrupted}`);
    say(`interrupted: ${body.status}`);
    if (body.status === 'running') expect(await enter(body)).toBe('in');
    await customer.rest('DELETE', `/v1/servers/${interrupted}`);
    if (body.status !== 'running') expect(await customer.balance()).toBe(before);
  });

  it('makes a machine on a living member if its own host is dead', async () => {
    expect(await stateOf('n1')).toBe('ACTIVE');
    // With this much room, n1 is the first choice. The service has not noticed its death yet.
    await operatorOf(world).resize('n1', 6_553_600);
    await sellOn('n1', 'n2', 'n3');
    const server = await sell();
    await operatorOf(world).resize('n1', 65_536);
    expect(await observe(server.order_number)).toEqual([
      expect.objectContaining({ generation: 2, host: expect.stringMatching(/^n[23]$/) }),
    ]);
    await customer.rest('DELETE', `/v1/servers/${server.order_number}`);
    await eventually(async () => (await statusOf(server.order_number)) === 'deleted', 60);
  });

  it('sells nothing on a member that is known to be dead, and the status page reports it', async () => {
    // The reboot ends in a test below.
    expect((await customer.rest('PATCH', `/v1/servers/${staying!.order_number}`, { action: 'reboot' })).status).toBe(
      200,
    );
    await eventually(async () => {
      await lookAround(world);
      return (await stateOf('n1')) === 'OFFLINE';
    }, 90);
    expect((await hosts()).filter(({ state }) => state === 'ACTIVE').map(({ name }) => name)).toEqual(['n2', 'n3']);
    const status = await eventually(async () => {
      await lookAround(world);
      const { body } = await customer.rest('GET', '/v1/transparency/status');
      const { status } = body.components.find(({ id }: { id: string }) => id === 'machines-zrh');
      return status !== 'operational' && status;
    });
    expect(status).toBe('partial_outage');
  });
});

describeJourney('A VPS in a cluster of which one member is dead', () => ({ customer, keys, instances }), {
  ipv6: true,
});

describe('A server on the dead member', () => {
  it('waits with its change until the member is back', async () => {
    expect(await statusOf(staying!.order_number)).toBe('rebooting');
  });

  it('is refunded at once when it is deleted, and keeps its addresses until the member is back', async () => {
    const before = await customer.balance();
    const { body } = await customer.rest('DELETE', `/v1/servers/${leaving!.order_number}`);
    expect(body.refunded_usd).toBeGreaterThan(5.9);
    expect(await customer.balance()).toBeCloseTo(before + body.refunded_usd, 5);
    await new Promise((resolve) => setTimeout(resolve, 3000));
    expect(await statusOf(leaving!.order_number)).toBe('deleting');
    expect(await heldAddresses(world)).toBeGreaterThanOrEqual(4);
    expect(await ssh(leaving!.ipv4, keys[0].file, 'echo in')).toBe('in');
  });

  it('is removed if it was deleted, or changed, once the member is back', async () => {
    await cluster.members[0]!.start();
    await eventually(async () => (await statusOf(leaving!.order_number)) === 'deleted', 200);
    await eventually(async () => (await instances()).length === 1, 60);
    await eventually(async () => (await heldAddresses(world)) === 2, 120);
    expect(await customer.settled(staying!.order_number, 200)).toMatchObject({ status: 'running', failure: null });
    expect(await enter(staying!)).toBe('in');
  });
});

const mover = newKey('mover');
const asMover = ({ network }: MachineSpec, command: string) => login(network.ipv4!.address, mover.file, command);
describeMoves({
  name: 'lxc',
  newDriver: () => driver,
  newSpec: () => newSpec([mover.publicKey], { network: '10.78.0', gateway: '10.78.0.254' }),
  trace: {
    leave: async (spec) => void (await asMover(spec, 'touch /root/trace; sync')),
    left: async (spec) => (await asMover(spec, 'ls /root'))?.includes('trace') ?? false,
  },
  hosts: ['n1', 'n2'],
  bootSeconds: 30,
});

describe('The machines of a host', () => {
  const machines = async () => (await hosts()).map(({ machines }) => machines);
  const isEmpty = (host: 0 | 1) => async () => {
    await lookAround(world);
    return (await machines())[host] === 0;
  };
  let off: Sold;

  it('move to other members when the operator evacuates it, and those that are off stay off', async () => {
    await sellOn('n1');
    off = await sell();
    await customer.rest('PATCH', `/v1/servers/${off.order_number}`, { power_state: 'off' });
    await customer.settled(off.order_number, 200);
    await sellOn('n2');
    expect(await machines()).toEqual([2, 0, 0]);
    await ssh(staying!.ipv4, keys[0].file, 'touch /root/trace; sync');
    await operatorOf(world).evacuate('n1');
    await eventually(isEmpty(0), 200);
    expect(await machines()).toEqual([0, 2, 0]);
    expect(await enter(staying!)).toBe('in');
    expect(await ssh(staying!.ipv4, keys[0].file, 'ls /root')).toContain('trace');
    expect(await statusOf(staying!.order_number)).toBe('running');
    expect(await observe(off.order_number)).toMatchObject([{ host: 'n2', power: 'off' }]);
    expect(await stateOf('n1')).toBe('EVACUATING');
  });

  it('move also if the engine of that member dies meanwhile', async () => {
    await sellOn('n1', 'n3');
    await operatorOf(world).evacuate('n2');
    const isMoving = async () => (await observe(staying!.order_number))[0]?.power !== 'on';
    await Promise.all([lookAround(world), eventually(isMoving, 60)]);
    await cluster.members[1]!.kill();
    say(`killed: ${JSON.stringify(await observe(staying!.order_number))}`);
    await cluster.members[1]!.start();
    await eventually(async () => (await isEmpty(1)()) || deleteCopies(cluster, world), 250);
    await operatorOf(world).evacuate('n2');
    await eventually(isEmpty(1), 250);
    expect(await enter(staying!)).toBe('in');
    expect(await ssh(staying!.ipv4, keys[0].file, 'ls /root')).toContain('trace');
    expect(await observe(off.order_number)).toMatchObject([{ power: 'off' }]);
    expect(await instances()).toHaveLength(2);
    await customer.rest('DELETE', `/v1/servers/${off.order_number}`);
    await eventually(async () => (await statusOf(off.order_number)) === 'deleted', 100);
  });

  it('are followed to another member, to which the operator moves them', async () => {
    await sellOn('n1', 'n2', 'n3');
    const from = (await observe(staying!.order_number))[0]!.host!;
    const to = from === 'n2' ? 'n1' : 'n2';
    const [path] = await instances();
    const name = path!.split('/').at(-1)!.split('?')[0]!;
    const call = (method: string, path: string, body?: object) =>
      cluster.members[1]!.call(method, `/1.0/instances/${name}${path}project=freehold`, body);
    const turn = (action: string) => call('PUT', '/state?', { action, force: true, timeout: -1 });
    await turn('stop');
    await call('POST', `?target=${to}&`, { name, migration: true });
    await turn('start');
    await eventually(async () => {
      await lookAround(world);
      return (await hosts()).find((host) => host.name === to)!.machines === 1;
    }, 60);
    expect((await machines()).toSorted()).toEqual([0, 0, 1]);
    expect(await enter(staying!)).toBe('in');
    await customer.rest('DELETE', `/v1/servers/${staying!.order_number}`);
    await eventually(async () => (await instances()).length === 0, 60);
    await eventually(async () => {
      await lookAround(world);
      return (await hosts()).every(({ state, machines }) => state === 'ACTIVE' && machines === 0);
    });
    // The guide states the sizes of better hosts than these.
    const { findings } = (await world.operator('{ findings { kind } }')).data as { findings: { kind: string }[] };
    expect(new Set(findings.map(({ kind }) => kind))).toEqual(new Set(['CAPACITY']));
  });
});
