/**
 * A real LXD that disappears while it makes and changes machines of customers. ENGINE_OUTAGE_SECONDS is the length of each
 * outage. The service promises this for 20 minutes (1200), and ends an order or a change after 30.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { beforeEach, describe, expect, it } from 'vitest';
import { newDatabaseUrl } from '../setup/database.ts';
import { eventually } from '../setup/freehold.ts';
import { say } from '../setup/say.ts';
import { SECRET_KEY } from '../setup/vault.ts';
import {
  type Customer,
  heldAddresses,
  login,
  newCustomer,
  type Sold,
  startWorld,
  type UploadedKey,
  uploadKey,
  type World,
} from './customer.ts';
import { type Lxd, ssh, startSingleLxd } from './lxd.ts';

const OUTAGE_SECONDS = Number(process.env.ENGINE_OUTAGE_SECONDS ?? 0);
/** The longest pause before the next attempt, and the time of 40 changes on a busy machine. */
const AFTER_SECONDS = 150 + 300;

const OUTAGES: Record<string, [begin: () => Promise<void> | void, end: () => Promise<void> | void]> = {
  'A killed engine': [() => lxd.kill(), () => lxd.start()],
  'An engine that stops for an upgrade': [() => lxd.kill('SIGTERM'), () => lxd.start()],
  'A hung engine': [() => lxd.freeze(), () => lxd.thaw()],
};

let lxd: Lxd;
let databaseUrl: string;
let world: World;
let customer: Customer;
let [key, otherKey]: UploadedKey[] = [];

let engines = 0;

describe.skipIf(!OUTAGE_SECONDS)('An outage', () => {
  // A shop for each outage, because freed addresses rest longer than a short one.
  beforeEach(async () => {
    lxd = await startSingleLxd(`outage-${++engines}`);
    databaseUrl = await newDatabaseUrl();
    const place = { LXC_ENDPOINTS: `unix:${lxd.socketPath}`, LXC_POOL: 'machines', LXC_NETWORK: 'machines' };
    world = await startWorld(databaseUrl, { ...place, LIMIT_SERVERS: '100' }, '10.79.0.0');
    for (const code of ['vps-1', 'vps-2']) {
      const stock = `setStock(region: "zrh", serviceCode: "${code}", total: 100)`;
      expect((await world.operator(`mutation { ${stock} { total } }`)).errors).toBeUndefined();
    }
    customer = await newCustomer(world, 1000);
    [key, otherKey] = [await uploadKey(customer, 'outage'), await uploadKey(customer, 'outage-2')];
  });

  it.each(Object.entries(OUTAGES))(
    `%s costs no order and no change in ${OUTAGE_SECONDS} s`,
    {
      timeout: (OUTAGE_SECONDS + 3 * AFTER_SECONDS) * 1000,
    },
    async (name, [begin, end]) => {
      const [resized, rebuilt, rebooted, deleted] = await sellMachines();
      const logged = world.service.output().length;

      const rebuild = { action: 'rebuild', os: 'alpine-3.22', ssh_key_ids: [otherKey!.id] };
      const changed = Promise.all([
        ...resized.map((one) => patch(one, { service_code: 'vps-2' })),
        ...rebuilt.map((one) => patch(one, rebuild)),
        ...rebooted.map((one) => patch(one, { action: 'reboot' })),
        ...deleted.map(async (one) => expect((await customer.rest('DELETE', `/v1/servers/${one}`)).status).toBe(200)),
      ]);
      const ordered = await times(10, order);
      await changed;
      await begin();
      ordered.push(...(await times(10, order)));
      await sleep(OUTAGE_SECONDS * 1000);
      const { data } = await world.operator('{ tasks(limit: 100) { subject } }');
      const waiting = data.tasks.filter(({ subject }: { subject: string }) => subject.startsWith('SRV-')).length;
      expect(waiting).toBeGreaterThan(20);
      await end();
      const { servers, secondsOf } = await atRest();

      say(`${name}: ${waiting} of 40 servers waited ${OUTAGE_SECONDS} s for it.`);
      const changes = { order: ordered, resize: resized, rebuild: rebuilt, reboot: rebooted, deletion: deleted };
      for (const [change, all] of Object.entries(changes)) say(rowOf(change, all.map(secondsOf)));

      const on = each([...ordered, ...rebuilt, ...rebooted], 'running');
      expect(statusesOf(servers)).toEqual({ ...on, ...each(resized, 'stopped') });
      expect(await ordersOfInstances()).toEqual([...servers.keys()].sort());
      expect(failuresSince(logged)).toEqual([]);
      await eventually(async () => (await heldAddresses(world)) === 2 * servers.size);

      const seen = async (all: string[], { file }: UploadedKey, command: string) =>
        new Set(await Promise.all(all.map((one) => login(servers.get(one)!.ipv4, file, command))));
      expect(await seen(ordered, key!, BOOTS)).toEqual(new Set(['1']));
      expect(await seen(rebuilt, otherKey!, BOOTS)).toEqual(new Set(['1']));
      for (const one of rebuilt) expect(await ssh(servers.get(one)!.ipv4, key!.file, 'true')).toBeUndefined();
      expect(await seen(rebooted, key!, BOOTS)).toEqual(new Set(['2\nhere']));
      await Promise.all(resized.map((one) => patch(one, { power_state: 'on' })));
      await atRest();
      expect(await seen(resized, key!, `nproc; ${BOOTS}`)).toEqual(new Set(['2\n2']));

      expect(await bills()).toEqual({
        ...each([...ordered, ...rebuilt, ...rebooted], ['order']),
        ...each(resized, ['order', 'order']),
        ...each(deleted, ['order', 'refund']),
      });
      await proveBooks();
    },
  );
});

/** How often the system of a machine booted since it was installed, and whether it has the trace. */
const BOOTS = 'grep -c "" /var/log/boots; cat /root/trace 2>/dev/null || true';

const times = <T>(count: number, make: () => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, make));
const each = <T>(orderNumbers: string[], value: T) => Object.fromEntries(orderNumbers.map((one) => [one, value]));
const order = () => customer.order({ ssh_key_ids: [key!.id] });
const patch = async (orderNumber: string, body: object) => {
  const answer = await customer.rest('PATCH', `/v1/servers/${orderNumber}`, body);
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
};

/** Sells four times five machines. The first five are off, and the next ten have a trace. @returns their order numbers */
async function sellMachines(): Promise<[string[], string[], string[], string[]]> {
  const sold = await times(20, order);
  const { servers } = await atRest();
  expect(statusesOf(servers)).toEqual(each(sold, 'running'));
  await Promise.all(sold.slice(0, 5).map((one) => patch(one, { power_state: 'off' })));
  const leaveTrace = (one: string) => login(servers.get(one)!.ipv4, key!.file, 'echo here >/root/trace; sync');
  await Promise.all(sold.slice(5, 15).map(leaveTrace));
  await atRest();
  return [sold.slice(0, 5), sold.slice(5, 10), sold.slice(10, 15), sold.slice(15)];
}

/** Waits until no server changes. @returns the servers, and the seconds until each one was at rest or gone */
async function atRest(): Promise<{ servers: Map<string, Sold>; secondsOf(orderNumber: string): number }> {
  const begin = performance.now();
  const lastBusy = new Map<string, number>();
  const servers = await eventually(async () => {
    const all: Sold[] = (await customer.rest('GET', '/v1/servers?limit=100')).body.data;
    const busy = all.filter(({ status }) => !['running', 'stopped', 'failed'].includes(status));
    for (const { order_number } of busy) lastBusy.set(order_number, (performance.now() - begin) / 1000);
    return busy.length === 0 && new Map(all.map((one) => [one.order_number, one]));
  }, AFTER_SECONDS);
  return { servers, secondsOf: (orderNumber) => lastBusy.get(orderNumber) ?? 0 };
}

const statusesOf = (servers: Map<string, Sold>) =>
  Object.fromEntries([...servers].map(([one, { status, failure }]) => [one, failure?.code ?? status]));

/** A row of the table. Its times begin with the end of the outage. */
function rowOf(change: string, seconds: number[]): string {
  const sorted = seconds.toSorted((a, b) => a - b);
  const [middle, last] = [sorted[sorted.length >> 1]!, sorted.at(-1)!].map((one) => `${Math.round(one)} s`);
  return `| ${change.padEnd(8)} | ${String(seconds.length).padStart(2)} | half done after ${middle} | all after ${last} |`;
}

interface Instance {
  config: Record<string, string>;
}
/** The order number of each instance that the engine has. */
async function ordersOfInstances(): Promise<string[]> {
  const instances = (await lxd.call('GET', '/1.0/instances?recursion=1&project=freehold')) as Instance[];
  return instances.map(({ config }) => config['user.freehold-order']!).sort();
}

/**
 * The calls of the engine that failed otherwise than by the outage. A busy host fails to start a container now and then, also
 * without an outage.
 */
const failuresSince = (logged: number): string[] =>
  world.service
    .output()
    .slice(logged)
    .match(/^.*"msg":"SRV-.*engine \\".*\\": (?!unreachable|.*forkstart).*$/gm) ?? [];

interface Item {
  kind: string;
  order_number: string;
}
/** The changes of the balance by the number of their server, the first one first. */
async function bills(): Promise<Record<string, string[]>> {
  const { body } = await customer.rest('GET', '/v1/account/usage?limit=100');
  const items = (body.data as Item[]).filter(({ order_number }) => order_number.startsWith('SRV-')).reverse();
  const byServer = Object.groupBy(items, ({ order_number }) => order_number);
  return Object.fromEntries(Object.entries(byServer).map(([one, all]) => [one, all!.map(({ kind }) => kind)]));
}

/** @throws Error if the books are wrong */
async function proveBooks(): Promise<void> {
  const env = { PATH: process.env.PATH, DATABASE_URL: databaseUrl, SECRET_KEY };
  await promisify(execFile)(process.execPath, [join(import.meta.dirname, '../../commands/verify.ts')], { env });
}
