/**
 * A real LXD that disappears while it makes and changes machines of customers. ENGINE_OUTAGE_SECONDS is the length of each
 * outage. The service promises this for 20 minutes (1200), and ends an order or a change after 30.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newDatabaseUrl } from '../setup/database.ts';
import { eventually } from '../setup/freehold.ts';
import { say } from '../setup/say.ts';
import { SECRET_KEY } from '../setup/vault.ts';
import {
  type Customer,
  heldAddresses,
  login,
  newCustomer,
  startWorld,
  type UploadedKey,
  uploadKey,
  type World,
} from './customer.ts';
import { type Lxd, ssh, startSingleLxd } from './lxd.ts';

const OUTAGE_SECONDS = Number(process.env.ENGINE_OUTAGE_SECONDS ?? 60);
/** The longest pause before the next attempt, and the time of 40 changes on a busy machine. */
const AFTER_SECONDS = 150 + 300;

let lxd: Lxd;
let databaseUrl: string;
let world: World;
let customer: Customer;
let keys: readonly [UploadedKey, UploadedKey];

const ends: (() => Promise<unknown>)[] = [];
const onEnd = (end: () => Promise<unknown>) => void ends.push(end);
afterAll(async () => {
  for (const end of ends.reverse()) await end();
});

beforeAll(async () => {
  lxd = await startSingleLxd('outage');
  databaseUrl = await newDatabaseUrl(onEnd);
  const environment = {
    LXC_ENDPOINTS: `unix:${lxd.socketPath}`,
    LXC_POOL: 'machines',
    LXC_NETWORK: 'machines',
    LIMIT_SERVERS: '100',
  };
  world = await startWorld(databaseUrl, environment, '10.79.0.0', onEnd);
  for (const code of ['vps-1', 'vps-2']) {
    const stock = `setStock(region: "zrh", serviceCode: "${code}", total: 200)`;
    expect((await world.operator(`mutation { ${stock} { total } }`)).errors).toBeUndefined();
  }
  customer = await newCustomer(world, 1000);
  keys = [await uploadKey(customer, 'outage'), await uploadKey(customer, 'outage-2')];
});

const times = <T>(count: number, make: () => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, make));
const order = () => customer.order({ ssh_key_ids: [keys[0].id] });
const running = async (orderNumber: string) => {
  const server = await customer.settled(orderNumber, AFTER_SECONDS);
  expect(server).toMatchObject({ status: 'running', failure: null });
  return server;
};
const sell = async () => running(await order());
const patch = async (orderNumber: string, body: object) => {
  const answer = await customer.rest('PATCH', `/v1/servers/${orderNumber}`, body);
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
};
const instances = async () =>
  ((await lxd.call('GET', '/1.0/instances?project=freehold')) as string[]).map((path) => path.split('/').at(-1)!);
/** How often the system of a machine booted since it was installed, and whether it has the trace. */
const BOOTS = 'grep -c "" /var/log/boots; cat /root/trace 2>/dev/null || true';
const leaveTrace = async ({ ipv4 }: { ipv4: string }) => login(ipv4, keys[0].file, 'echo here >/root/trace; sync');

interface Item {
  kind: string;
  order_number: string;
  amount_usd: number;
}
/** The changes of the balance by the number of their server. */
async function bills(): Promise<Record<string, string[]>> {
  const items: Item[] = [];
  for (let cursor = ''; ; ) {
    const { body } = await customer.rest('GET', `/v1/account/usage?limit=100${cursor}`);
    items.push(...body.data);
    if (!body.has_more) break;
    cursor = `&cursor=${encodeURIComponent(body.next_cursor)}`;
  }
  const grouped = Object.groupBy(items.toReversed(), ({ order_number }) => order_number);
  return Object.fromEntries(Object.entries(grouped).map(([name, all]) => [name, all!.map(({ kind }) => kind)]));
}

const OUTAGES: Record<string, [begin: () => Promise<void> | void, end: () => Promise<void> | void]> = {
  'is killed': [() => lxd.kill(), () => lxd.start()],
  'is stopped for an upgrade': [() => lxd.kill('SIGTERM'), () => lxd.start()],
  hangs: [() => lxd.freeze(), () => lxd.thaw()],
};

describe.each(Object.entries(OUTAGES))('An engine that %s', (name, [begin, end]) => {
  it(`for ${OUTAGE_SECONDS} s costs no order, resize, rebuild, reboot or deletion`, {
    timeout: (OUTAGE_SECONDS + 3 * AFTER_SECONDS) * 1000,
  }, async () => {
    const resized = await times(5, sell);
    for (const { order_number } of resized) await patch(order_number, { power_state: 'off' });
    const [rebuilt, rebooted, deleted] = [await times(5, sell), await times(5, sell), await times(5, sell)];
    await Promise.all([...rebuilt, ...rebooted].map(leaveTrace));
    await Promise.all(resized.map(({ order_number }) => customer.settled(order_number)));
    const before = world.service.output().length;

    const refunds: number[] = [];
    const rebuild = { action: 'rebuild', os: 'alpine-3.22', ssh_key_ids: [keys[1].id] };
    const changes = [
      ...resized.map(({ order_number }) => patch(order_number, { service_code: 'vps-2' })),
      ...rebuilt.map(({ order_number }) => patch(order_number, rebuild)),
      ...rebooted.map(({ order_number }) => patch(order_number, { action: 'reboot' })),
      ...deleted.map(async ({ order_number }) => {
        const { body } = await customer.rest('DELETE', `/v1/servers/${order_number}`);
        refunds.push(body.refunded_usd);
      }),
    ];
    const orders = times(10, order);
    await Promise.race(changes);
    await begin();
    say(`The engine ${name}.`);
    await Promise.all(changes);
    const ordered = [...(await orders), ...(await times(10, order))];
    await sleep(OUTAGE_SECONDS * 1000);
    const { data } = await world.operator('{ tasks(limit: 100) { subject attempts error } }');
    say(`${data.tasks.length} tasks wait for it.`);
    expect(data.tasks.length).toBeGreaterThan(20);
    await end();

    const servers = await Promise.all(ordered.map(running));
    for (const { ipv4 } of servers) expect(await login(ipv4, keys[0].file, BOOTS)).toBe('1');
    for (const { order_number, ipv4 } of rebuilt) {
      await running(order_number);
      expect(await login(ipv4, keys[1].file, BOOTS)).toBe('1');
      expect(await ssh(ipv4, keys[0].file, 'true')).toBeUndefined();
    }
    for (const { order_number, ipv4 } of rebooted) {
      await running(order_number);
      expect(await login(ipv4, keys[0].file, BOOTS)).toBe('2\nhere');
    }
    for (const { order_number, ipv4 } of resized) {
      expect(await customer.settled(order_number, AFTER_SECONDS)).toMatchObject({ status: 'stopped', failure: null });
      await customer.change(order_number, { power_state: 'on' }, 'running');
      expect(await login(ipv4, keys[0].file, 'nproc; grep -c "" /var/log/boots')).toBe('2\n2');
    }
    for (const { order_number } of deleted)
      await eventually(
        async () => (await customer.rest('GET', `/v1/servers/${order_number}`)).status === 404,
        AFTER_SECONDS,
      );

    // One machine of each server and no other, and no call that failed otherwise than by the outage. A busy host fails to start a
    // container now and then, also without an outage.
    const kept = [...servers, ...rebuilt, ...rebooted, ...resized].map(({ order_number }) => order_number);
    expect((await instances()).map((one) => one.toUpperCase().slice(0, kept[0]!.length)).sort()).toEqual(
      kept.toSorted(),
    );
    const failed =
      world.service
        .output()
        .slice(before)
        .match(/^SRV-.*engine ".*": (?!unreachable|.*forkstart).*$/gm) ?? [];
    expect(failed).toEqual([]);

    const billed = await bills();
    const billsOf = (all: { order_number: string }[]) => all.map(({ order_number }) => billed[order_number]);
    expect(new Set(billsOf([...servers, ...rebuilt, ...rebooted]).map((all) => all!.join()))).toEqual(
      new Set(['order']),
    );
    expect(new Set(billsOf(resized).map((all) => all!.join()))).toEqual(new Set(['order,order']));
    expect(new Set(billsOf(deleted).map((all) => all!.join()))).toEqual(new Set(['order,refund']));
    expect(refunds).toHaveLength(5);
    await proveBooks();

    for (const one of kept) await customer.rest('DELETE', `/v1/servers/${one}`);
    await eventually(async () => (await instances()).length === 0, AFTER_SECONDS);
    await eventually(async () => (await heldAddresses(world)) === 0, AFTER_SECONDS);
  });
});

/** @throws Error if the books are wrong */
async function proveBooks(): Promise<void> {
  const env = { PATH: process.env.PATH, DATABASE_URL: databaseUrl, SECRET_KEY };
  await promisify(execFile)(process.execPath, [join(import.meta.dirname, '../../verify.ts')], { env });
}
