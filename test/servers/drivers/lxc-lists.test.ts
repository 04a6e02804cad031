/** The lists that the LXC driver asks of an engine, whose machines have much user data and long states. */
import { expect, it } from 'vitest';
import { type Instance, nameOf } from '../../../provisioning/servers/drivers/lxc/instance.ts';
import { LxcDriver } from '../../../provisioning/servers/drivers/lxc/lxc.ts';
import { newSpec } from '../../engine/machine.ts';
import { codeOf } from './contract.ts';
import { listen } from './engine-socket.ts';

const NEVER = new AbortController().signal;

/** A machine that is off, as the engine shows it. */
const shown = (order: string, more: object = {}): Instance => ({
  ...{ name: nameOf({ order, generation: 1 }), status: 'Stopped', location: 'none', devices: {} },
  config: { 'user.freehold-order': order, 'user.freehold-generation': '1', 'user.freehold-ready': '1' },
  ...more,
});

/** The instances that fit a filter of the engine: `field eq value`, joined by `or`. */
const fitting = (instances: readonly Instance[], filter: string) =>
  instances.filter(({ name, config }) =>
    filter.split(' or ').some((clause) => {
      const [field, value] = clause.split(' eq ');
      return (field === 'name' ? name : config?.[field!.replace(/^config\./, '')]) === value;
    }),
  );

type List = [recursion: string, length: number];

/** An engine with these instances. It tells the lists that it was asked for, each by its recursion and length. */
async function openListed(
  instances: readonly Instance[],
  { clustered = false, onList = () => {} }: { clustered?: boolean; onList?: (list: List) => void } = {},
) {
  const lists: List[] = [];
  const server = { server: 'lxd', server_clustered: clustered, server_name: 'n1' };
  const answers: Record<string, (query: URLSearchParams) => unknown> = {
    'GET /1.0': () => ({ auth: 'trusted', environment: server }),
    'GET /1.0/projects/freehold': () => ({ config: {} }),
    'GET /1.0/networks/br0': () => ({ managed: false, config: {} }),
    'GET /1.0/operations': () => ({}),
    'GET /1.0/instances': (query) => {
      const found = query.has('filter') ? fitting(instances, query.get('filter')!) : instances;
      if (!query.has('recursion')) return found.map(({ name }) => `/1.0/instances/${name}?project=freehold`);
      lists.push([query.get('recursion')!, found.length]);
      onList(lists.at(-1)!);
      // Only recursion 2 tells states.
      return query.get('recursion') === '2' ? found : found.map((one) => ({ ...one, state: undefined }));
    },
    ...Object.fromEntries(instances.map((one) => [`GET /1.0/instances/${one.name}`, () => one])),
  };
  const socketPath = await listen((request, response, _, url) => {
    const metadata = answers[request]?.(url.searchParams);
    response.end(JSON.stringify(metadata ? { type: 'sync', metadata } : { type: 'error', error_code: 404 }));
  });
  const place = { project: 'freehold', pool: 'p', network: 'br0', nameservers: [] };
  return { lists, driver: new LxcDriver({ endpoints: [{ socketPath }], ...place }) };
}

const OTHERS = Array.from({ length: 30 }, (_, index) => shown(`SRV-000000000${index}`));

it.each([false, true])(
  'A look at an absent machine lists no machine of others, in a cluster: %s',
  async (clustered) => {
    const { driver, lists } = await openListed(OTHERS, { clustered });
    const spec = newSpec();
    expect(await driver.observe(spec, NEVER)).toMatchObject({ phase: 'absent' });
    expect(await driver.destroy(spec, NEVER)).toMatchObject({ phase: 'absent' });
    expect(Math.max(...lists.map(([, length]) => length))).toBe(0);
  },
);

it('The driver finds a machine by its mark under another name, and no other one', async () => {
  const renamed = shown('SRV-00000000AA', { name: 'moved-by-hand' });
  const later = shown('SRV-00000000AA', { name: 'next' });
  later.config!['user.freehold-generation'] = '2';
  const { driver, lists } = await openListed([...OTHERS, renamed, later]);
  const key = { order: 'SRV-00000000AA', generation: 1 };
  expect(await driver.observe(key, NEVER)).toMatchObject({ ...key, phase: 'present', power: 'off' });
  expect(lists).toEqual([['1', 2]]);
});

it('The driver refuses a move beside a copy, and lists no machine of others for it', async () => {
  const key = { order: 'SRV-00000000AA', generation: 1 };
  const copy = shown(key.order, { name: 'lxd-move-of-1', location: 'n2' });
  const { driver, lists } = await openListed([...OTHERS, shown(key.order), copy]);
  expect(await codeOf(driver.move(key, 'n2', NEVER))).toBe('stuck');
  expect(lists).toEqual([['1', 2]]);
});

it('A list that is too long for one answer is read in parts', async () => {
  const orders = Array.from({ length: 310 }, (_, index) => `SRV-${index}`);
  const userData = 'x'.repeat(220 * 2 ** 10);
  const { driver, lists } = await openListed(
    orders.map((order) => {
      const one = shown(order);
      return { ...one, config: { ...one.config, 'cloud-init.user-data': userData } };
    }),
  );
  expect((await driver.list(NEVER)).map(({ order }) => order)).toEqual(orders);
  expect(lists.map(([, length]) => length)).toEqual([310, ...Array(15).fill(20), 10]);
});

const RUNNING = OTHERS.map((one) => ({ ...one, status: 'Running', state: { pid: 7, cpu: { usage: 5 } } }));

/** Running machines, the first of which have a state of two MiB. */
const withLong = (count: number) =>
  RUNNING.map((one, index) =>
    index < count ? { ...one, state: { ...one.state, note: 'x'.repeat(2 * 2 ** 20) } } : one,
  );

it('The driver reads the user data of all machines, but not the long states that root made in some', async () => {
  const userData = '\u0001'.repeat(64 * 2 ** 10);
  const config = (one: Instance) => ({ ...one.config, 'cloud-init.user-data': userData });
  const running = withLong(2).map((one) => ({ ...one, config: config(one), expanded_config: config(one) }));
  const { driver } = await openListed(running);
  const readings = await driver.meter(NEVER);
  expect(readings.map(({ isUnread = false }) => isUnread)).toEqual([...Array(2).fill(true), ...Array(28).fill(false)]);
  expect(await driver.list(NEVER)).toHaveLength(30);
});

it('The next look reads long states alone and last, so a timeout loses only them', async () => {
  let timeout = new AbortController();
  const { driver, lists } = await openListed(withLong(12), {
    onList: ([recursion, length]) => recursion === '2' && length === 1 && lists[0]![0] === '1' && timeout.abort(),
  });
  await driver.meter(timeout.signal);
  for (const _ of ['this look', 'and the next']) {
    timeout = new AbortController();
    lists.length = 0;
    const readings = await driver.meter(timeout.signal);
    expect(lists).toEqual([
      ['1', 12],
      ['2', 18],
      ['2', 1],
    ]);
    expect(readings.filter(({ cpuNs }) => cpuNs === 5)).toHaveLength(18);
    expect(readings.filter(({ isUnread }) => isUnread)).toHaveLength(12);
  }
});

it('States that are long at every second look cost few requests after the first', async () => {
  const [short, long] = [RUNNING, withLong(12)];
  const running = [...long];
  const { driver, lists } = await openListed(running);
  await driver.meter(NEVER);
  for (const now of [short, long, short, long]) {
    running.splice(0, 30, ...now);
    lists.length = 0;
    await driver.meter(NEVER);
    expect(lists).toEqual([['1', 12], ['2', 18], ...Array(12).fill(['2', 1])]);
  }
});

it('A state that was short for ten looks is read among the others again', async () => {
  const running = withLong(2);
  const { driver, lists } = await openListed(running);
  await driver.meter(NEVER);
  running.splice(0, 30, ...RUNNING);
  for (let look = 0; look < 10; look++) await driver.meter(NEVER);
  lists.length = 0;
  await driver.meter(NEVER);
  expect(lists).toEqual([['2', 30]]);
});

it('A state that is short again counts again', async () => {
  const running = withLong(12);
  const { driver } = await openListed(running);
  expect((await driver.meter(NEVER)).filter(({ isUnread }) => isUnread)).toHaveLength(12);
  running.splice(0, 30, ...RUNNING);
  expect((await driver.meter(NEVER)).filter(({ cpuNs }) => cpuNs === 5)).toHaveLength(30);
});

it('A machine whose state is too long for an answer keeps no other one from its reading', async () => {
  const note = 'x'.repeat(17 * 2 ** 20);
  const long = { ...RUNNING[17]!, state: { ...RUNNING[17]!.state, note } };
  const { driver, lists } = await openListed(RUNNING.with(17, long));
  const readings = await driver.meter(NEVER);
  const ofLong = { order: 'SRV-00000000017', generation: 1, isUnread: true };
  expect(readings.filter(({ cpuNs }) => cpuNs === 5)).toHaveLength(29);
  expect(readings.filter(({ isUnread }) => isUnread)).toMatchObject([ofLong]);
  expect(lists.at(-1)).toEqual(['2', 10]);
});
