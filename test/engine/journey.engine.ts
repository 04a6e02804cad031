/** Servers on a real LXD, from the order to the deletion, also while the engine is killed. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { newDatabaseUrl } from '../setup/database.ts';
import { eventually } from '../setup/freehold.ts';
import { say } from '../setup/say.ts';
import {
  type Customer,
  heldAddresses,
  login,
  lookAround,
  newCustomer,
  startWorld,
  type UploadedKey,
  uploadKey,
  type World,
} from './customer.ts';
import { describeJourney } from './journey.ts';
import { type Lxd, startSingleLxd } from './lxd.ts';

let lxd: Lxd;
let world: World;
let customer: Customer;
let keys: readonly [UploadedKey, UploadedKey];

beforeAll(async () => {
  lxd = await startSingleLxd('journey');
  world = await startWorld(
    await newDatabaseUrl(),
    {
      LXC_ENDPOINTS: `unix:${lxd.socketPath}`,
      LXC_POOL: 'machines',
      LXC_NETWORK: 'machines',
    },
    '10.79.0.0',
  );
  customer = await newCustomer(world, 500);
  keys = [await uploadKey(customer, 'customer'), await uploadKey(customer, 'customer-2')];
});

/** Starts the engine again, and retries the failed task at once, which its schedule would do some seconds later. */
async function revive(orderNumber: string): Promise<void> {
  await lxd.start();
  await retry(orderNumber);
}
/** The service refuses this without an open task, in which case nothing needs a retry. */
const retry = (orderNumber: string) => world.operator(`mutation { retryTask(subject: "${orderNumber}") { subject } }`);
const instances = async () => (await lxd.call('GET', '/1.0/instances?project=freehold')) as string[];

describeJourney('A VPS on real LXD', () => ({ customer, keys, instances }));

/** Milliseconds after the order. The engine needs about half a second to make and start the tiny image. */
const KILLS = (
  process.env.ENGINE_KILLS ?? '10,20,30,45,60,75,90,110,130,150,170,190,210,235,260,285,310,340,370,410,460,520,600,700'
)
  .split(',')
  .map(Number);

describe('An engine that is killed while it makes a machine', () => {
  it.each(KILLS)('lets the order end with a login or a refund: killed after %i ms', async (ms) => {
    const before = await customer.balance();
    const orderNumber = await customer.order({ ssh_key_ids: [keys[0].id] });
    await new Promise((resolve) => setTimeout(resolve, ms));
    await lxd.kill();
    await revive(orderNumber);
    const server = await customer.settled(orderNumber, 200);
    say(`killed after ${ms} ms: ${server.status}`);
    if (server.status === 'failed') expect(await customer.balance()).toBe(before);
    else expect(await login(server.ipv4, keys[0].file, 'echo in')).toBe('in');
    await customer.rest('DELETE', `/v1/servers/${orderNumber}`);
    // Left-over instances would slow down the next start of the engine.
    await eventually(async () => (await instances()).length === 0, 120);
  });
});

describe('A half-made machine that cannot be removed', () => {
  /** The btrfs folder of an instance. */
  const volumeOf = (name: string) => join(lxd.folder, 'storage-pools/machines/containers', `freehold_${name}`);
  const btrfs = (...args: string[]) => execFileSync('btrfs', ['subvolume', ...args], { encoding: 'utf8' });
  /** The default subvolume of a file system cannot be deleted. */
  const keepUp = (name: string) => btrfs('set-default', volumeOf(name));
  const letGo = () => btrfs('set-default', '5', join(lxd.folder, 'storage-pools/machines'));
  const marksOf = async (name: string) =>
    ((await lxd.call('GET', `/1.0/instances/${name}?project=freehold`)) as {
      config: Record<string, string>;
      devices: object;
    }) ?? {};

  const attemptsOf = async (orderNumber: string) =>
    (
      (await world.operator('{ tasks { subject step attempts } }')).data.tasks as {
        subject: string;
        step: string;
        attempts: number;
      }[]
    ).find(({ subject }) => subject === orderNumber);

  /** Orders a server, and kills the engine once a part of its machine exists, which then cannot be removed. */
  async function interrupted(): Promise<string> {
    for (let tries = 0; tries < 9; tries++) {
      const orderNumber = await customer.order({ ssh_key_ids: [keys[0].id] });
      const name = `${orderNumber.toLowerCase()}-1`;
      await eventually(async () => existsSync(volumeOf(name)));
      await lxd.kill();
      keepUp(name);
      const tried = await attemptsOf(orderNumber);
      await revive(orderNumber);
      if ((await marksOf(name)).config['user.freehold-ready'] !== '1') {
        // The worker retries the same generation.
        expect(tried).toMatchObject({ step: 'reconcile' });
        expect(tried!.attempts).toBeLessThan(3);
        return orderNumber;
      }
      letGo();
      await customer.rest('DELETE', `/v1/servers/${orderNumber}`);
    }
    throw new Error('The engine was faster than every kill.');
  }

  it('loses its network and is reported, and another machine takes its place and its address', async () => {
    const orderNumber = await interrupted();
    const [first, second] = [1, 2].map((generation) => `${orderNumber.toLowerCase()}-${generation}`) as [
      string,
      string,
    ];
    const server = await customer.settled(orderNumber, 200);
    expect(server).toMatchObject({ status: 'running', failure: null });
    expect(await login(server.ipv4, keys[0].file, 'echo in')).toBe('in');
    const zombie = await marksOf(first);
    expect(zombie.config).toMatchObject({ 'user.freehold-stuck': '1', 'user.freehold-generation': '1' });
    expect(zombie.devices).not.toHaveProperty('eth0');
    expect((await marksOf(second)).devices).toMatchObject({ eth0: { 'ipv4.address': server.ipv4 } });
    const { data } = await world.operator('{ findings { kind orderNumber generation } }');
    expect(data.findings).toEqual([{ kind: 'STUCK', orderNumber, generation: 1 }]);

    // The deletion ends, and frees the addresses, only once the engine has removed both machines.
    await customer.rest('DELETE', `/v1/servers/${orderNumber}`);
    await eventually(async () => !(await instances()).some((path) => path.includes(second)));
    expect(await customer.rest('GET', `/v1/servers/${orderNumber}`)).toMatchObject({ body: { status: 'deleting' } });
    expect(await heldAddresses(world)).toBe(2);
    letGo();
    await retry(orderNumber);
    await eventually(async () => (await customer.rest('GET', `/v1/servers/${orderNumber}`)).status === 404);
    expect(await instances()).toEqual([]);
    expect(await heldAddresses(world)).toBe(0);
    await eventually(async () => {
      await lookAround(world);
      return (await world.operator('{ findings { kind } }')).data.findings.length === 0;
    });
  });
});
