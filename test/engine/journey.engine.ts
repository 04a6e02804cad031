/** From an order over REST to a login, and to nothing left on the engine: with real LXD, also one that is killed. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newDatabaseUrl } from '../database.ts';
import { eventually } from '../freehold.ts';
import { type Customer, login, newCustomer, startWorld, type World } from './customer.ts';
import { type Lxd, newKey, ssh, startSingleLxd } from './lxd.ts';

let lxd: Lxd;
let world: World;
let customer: Customer;
const [key, otherKey] = [newKey('customer'), newKey('customer-2')];
const keyIds: string[] = [];

const ends: (() => Promise<unknown>)[] = [];
const onEnd = (end: () => Promise<unknown>) => void ends.push(end);
afterAll(async () => {
  for (const end of ends.reverse()) await end();
});

beforeAll(async () => {
  lxd = await startSingleLxd('journey');
  world = await startWorld(
    await newDatabaseUrl(onEnd),
    { LXC_ENDPOINTS: `unix:${lxd.socketPath}`, LXC_POOL: 'machines', LXC_NETWORK: 'machines' },
    '10.79.0.0',
    onEnd,
  );
  customer = await newCustomer(world, 500);
  for (const { publicKey } of [key, otherKey]) keyIds.push(await customer.upload(publicKey));
});

const instances = async () => (await lxd.call('GET', '/1.0/instances')) as string[];

describe('A VPS on real LXD', () => {
  let orderNumber: string;
  let ipv4: string;

  it('is opened by the key that was uploaded', async () => {
    orderNumber = await customer.order({ ssh_key_ids: [keyIds[0]], hostname: 'first.example.org' });
    const server = await customer.settled(orderNumber);
    expect(server).toMatchObject({ status: 'running' });
    ipv4 = server.ipv4;
    expect(await login(ipv4, key.file, 'hostname; echo here >/root/mine; sync')).toBe('first.example.org');
    expect(await ssh(ipv4, otherKey.file, 'true')).toBeUndefined();
  });

  it('reboots, and keeps what is on it', async () => {
    await customer.change(orderNumber, { action: 'reboot' }, 'running');
    expect(await login(ipv4, key.file, 'cat /root/mine')).toBe('here');
  });

  it('is made anew with another key', async () => {
    await customer.change(orderNumber, { action: 'rebuild', os: 'alpine-3.22', ssh_key_ids: [keyIds[1]] }, 'running');
    expect(await login(ipv4, otherKey.file, 'cat /root/mine 2>/dev/null || echo empty')).toBe('empty');
    expect(await ssh(ipv4, key.file, 'true')).toBeUndefined();
  });

  it('gets a larger size while it is off', async () => {
    await login(ipv4, otherKey.file, 'echo kept >/root/mine; sync');
    await customer.change(orderNumber, { power_state: 'off' }, 'stopped');
    expect(await ssh(ipv4, otherKey.file, 'true')).toBeUndefined();
    await customer.change(orderNumber, { service_code: 'vps-2' }, 'stopped');
    await customer.change(orderNumber, { power_state: 'on' }, 'running');
    expect(await login(ipv4, otherKey.file, 'nproc; cat /root/mine')).toBe('2\nkept');
  });

  it('leaves nothing on the engine when it is deleted', async () => {
    expect(await instances()).toHaveLength(1);
    expect((await customer.rest('DELETE', `/v1/servers/${orderNumber}`)).status).toBe(200);
    await eventually(async () => (await instances()).length === 0);
    expect(await ssh(ipv4, otherKey.file, 'true')).toBeUndefined();
  });
});

/** Milliseconds after the order. Making and starting the tiny image takes about half a second. */
const KILLS = (process.env.ENGINE_KILLS ?? '20,60,110,160,220,300,400,550').split(',').map(Number);

describe('An engine that is killed while it makes a machine', () => {
  it.each(KILLS)('after %i ms: the order ends with a login, or with its money', async (ms) => {
    const before = await customer.balance();
    const orderNumber = await customer.order({ ssh_key_ids: [keyIds[0]] });
    await new Promise((resolve) => setTimeout(resolve, ms));
    await lxd.kill();
    await lxd.start();
    const server = await customer.settled(orderNumber, 200);
    console.log(`killed after ${ms} ms: ${server.status}`);
    if (server.status === 'failed') expect(await customer.balance()).toBe(before);
    else expect(await login(server.ipv4, key.file, 'echo in')).toBe('in');
    await customer.rest('DELETE', `/v1/servers/${orderNumber}`);
    await eventually(async () => (await instances()).length === 0, 120);
  });
});
