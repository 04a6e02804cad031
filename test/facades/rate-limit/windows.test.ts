/** The windows of the rate limits: in memory with a clock of the test, in PostgreSQL and in Redis. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../entities/database/database.ts';
import { networkOf, siteOf } from '../../../entities/networks.ts';
import { type Taken, takeRateLimits } from '../../../entities/rate-limit.ts';
import { MemoryRateLimits } from '../../../facades/rate-limit/memory.ts';
import { RateLimits } from '../../../facades/rate-limit/rate-limit.ts';
import { RedisRateLimits } from '../../../facades/rate-limit/redis.ts';
import { type RateLimitStore, waitOf } from '../../../facades/rate-limit/window.ts';
import { newDatabase } from '../../setup/database.ts';
import { atEnd } from '../../setup/end.ts';
import { eventually } from '../../setup/freehold.ts';
import { hasRedis, type RunningRedis, startRedis } from '../../setup/programs/redis.ts';
import { viewer } from '../sample-api.ts';

const HOUR = 3_600_000;

/** Counts a call under one name. */
const takeOne = async (store: RateLimitStore, name: string, perMinute: number, perHour: number): Promise<Taken> =>
  (await store.take([{ name, perMinute, perHour }]))[0]!;

describe('A sliding window', () => {
  let now = 500_000 * HOUR;
  const rates = new MemoryRateLimits(() => now);
  const take = async (n: number, perMinute = 120, perHour = 3000, name = 'key') => {
    let allowed = 0;
    for (let i = 0; i < n; i++) if ((await takeOne(rates, name, perMinute, perHour)).allowed) allowed++;
    return allowed;
  };

  it('allows its quota, and no further call', async () => {
    expect(await take(150)).toBe(120);
  });

  it('allows more and more calls in the next minute, as the calls of the last minute fade', async () => {
    now += 60_000;
    expect(await take(150)).toBe(0);
    now += 30_000;
    expect(await take(150)).toBe(60);
    now += 30_000 + 59_000;
    expect(await take(150)).toBe(119);
  });

  it('never allows more than twice its quota within any 60 seconds', async () => {
    const times: number[] = [];
    for (let i = 0; i < 3000; i++) {
      now += (i * 7919) % 400;
      if ((await takeOne(rates, 'spread', 120, 100_000)).allowed) times.push(now);
    }
    const most = Math.max(...times.map((from) => times.filter((time) => time >= from && time < from + 60_000).length));
    expect(most).toBeLessThanOrEqual(240);
    expect(most).toBeGreaterThanOrEqual(100);
  });

  it('counts no call in the hour that the minute has refused', async () => {
    now = 600_000 * HOUR;
    expect(await take(1000, 120, 300, 'hammer')).toBe(120);
    now += 120_000;
    expect(await take(1000, 120, 300, 'hammer')).toBe(120);
    now += 120_000;
    expect(await take(1000, 120, 300, 'hammer')).toBe(60);
    now += 120_000;
    expect(await take(1000, 120, 300, 'hammer')).toBe(0);
  });

  it.each([
    [{ current: 5, before: 0, elapsed: 10 }, 0],
    [{ current: 120, before: 0, elapsed: 10 }, 50.5],
    [{ current: 0, before: 120, elapsed: 0 }, 0.5],
    [{ current: 60, before: 120, elapsed: 30 }, 0.5],
  ])('with the counts %o allows the next call in %d s', (counted, seconds) => {
    expect(waitOf(counted, 120, 60)).toBeCloseTo(seconds, 6);
  });
});

describe('An address', () => {
  it.each([
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:DB8:1:2::9', '2001:db8:1:2::/64'],
    ['2001:0db8:0001:0002::', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8::/64'],
    ['::1', '::/64'],
    ['fe80::1%eth0', 'fe80::/64'],
    ['64:ff9b::192.0.2.7', '64:ff9b::/64'],
    ['fc00:dead:beef:4dad::0:29A', 'fc00:dead:beef:4dad::29a'],
    ['fc00:dead:beef:4dad::ffff:29a', 'fc00:dead:beef:4dad::ffff:29a'],
    ['fc00:dead:beef:4dae::1', 'fc00:dead:beef:4dae::/64'],
    ['192.0.2.7:20000', '192.0.2.7'],
    ['[2001:db8::1]:443', '2001:db8::/64'],
    ['[2001:db8::1]', '2001:db8::/64'],
    ['unknown', 'unreadable'],
    ['192.0.2.7:20000:1', 'unreadable'],
  ])('%s counts as %s', (address, counted) => {
    expect(networkOf(address)).toBe(counted);
  });

  it.each([
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1::/48'],
    ['fe80::1%eth0', 'fe80::/48'],
    ['fc00:dead:beef:4dad::0:29A', 'fc00:dead:beef:4dad::29a'],
  ])('%s takes turns as %s', (address, site) => {
    expect(siteOf(address)).toBe(site);
  });

  it.each([
    ['shares a limit with the other networks of its /48', (i: number) => `2001:db8:1:${i}::1`, 60],
    ['shares none with other sites', (i: number) => `2001:db8:${i + 1}::1`, 90],
  ])('%s', async (_, addressOf, answered) => {
    await earlyInTheMinute();
    const account = { keyPerMinute: 1, keyPerHour: 1, accountPerMinute: 1, accountPerHour: 1 };
    const quotas = { ...account, publicPerMinute: 3, pagesPerMinute: 3, onionPerMinute: 3, unpaidPerHour: 1 };
    const limits = new RateLimits({ quotas, secret: Buffer.alloc(32), isPayer: async () => true, onError: () => {} });
    let allowed = 0;
    for (let i = 0; i < 120; i++) if (!(await limits.take(null, addressOf(i % 30))).deniedUntil) allowed++;
    expect(allowed).toBe(answered);
  });
});

describe('A call with two names', () => {
  const ACCOUNT = { name: 'acct_1', perMinute: 10, perHour: 100 };
  const by = (name: string) => [{ name, perMinute: 6, perHour: 100 }, ACCOUNT];

  it('counts under both, or under none if one is full', async () => {
    const rates = new MemoryRateLimits(() => 700_000 * HOUR);
    await countsTogether(rates);
  });

  async function countsTogether(store: RateLimitStore) {
    const allowed = async (name: string, n: number) => {
      let count = 0;
      for (let i = 0; i < n; i++) if ((await store.take(by(name))).every((taken) => taken.allowed)) count++;
      return count;
    };
    expect(await allowed('key_1', 9)).toBe(6);
    expect(await allowed('key_2', 9)).toBe(4);
    const [own, account] = await store.take(by('key_2'));
    expect(own).toMatchObject({ allowed: true, minute: { current: 4 }, hour: { current: 4 } });
    expect(account).toMatchObject({ allowed: false, minute: { current: 10 }, hour: { current: 10 } });
    const [fresh] = await store.take(by('key_3'));
    expect(fresh).toMatchObject({ allowed: true, minute: { current: 0 }, hour: { current: 0 } });
  }

  it('does so in PostgreSQL', async () => {
    await earlyInTheMinute();
    await countsTogether(inDatabase(await newDatabase()));
  });

  it.runIf(hasRedis)('does so in Redis', async () => {
    await earlyInTheMinute();
    await countsTogether(await connectedTo(await startRedis(atEnd)));
  });

  it('never exceeds either limit in PostgreSQL when sixty calls come at once', async () => {
    await earlyInTheMinute();
    const store = inDatabase(await newDatabase());
    const calls = Array.from({ length: 60 }, (_, i) => store.take(by(`key_${i % 3}`)));
    const taken = await Promise.all(calls);
    expect(taken.filter((all) => all.every(({ allowed }) => allowed)).length).toBeLessThanOrEqual(10);
    const [, account] = await store.take(by('key_9'));
    expect(account).toMatchObject({ allowed: false, minute: { current: 10 } });
  });
});

it('A Redis that answers nonsense counts no call', async () => {
  const odd = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (data) => {
      // One packet can hold several commands.
      for (const command of String(data)
        .split(/^\*\d+\r\n/m)
        .slice(1))
        socket.write(command.includes('info') ? '$2\r\nok\r\n' : '*1\r\n+ok\r\n');
    });
  }).listen(0, '127.0.0.1');
  await once(odd, 'listening');
  atEnd(() => void odd.close());
  const store = await connectedTo({ url: `redis://127.0.0.1:${(odd.address() as AddressInfo).port}` });
  await expect(takeOne(store, 'key_1', 120, 3000)).rejects.toThrow('does not answer as the script does');
});

/** A store with a long timeout, because a busy machine delays answers. A timeout would count in memory. */
async function connectedTo({ url }: Pick<RunningRedis, 'url'>): Promise<RedisRateLimits> {
  const store = new RedisRateLimits(url, 10_000);
  atEnd(() => store.close());
  await store.ready();
  return store;
}

/** Waits for the beginning of a minute, because a new window would change the counts. */
async function earlyInTheMinute() {
  await eventually(async () => Date.now() % 60_000 < 40_000, 25);
}

function countsExactly(storeOf: () => Promise<[RateLimitStore, RateLimitStore]>) {
  it('allows 120 calls over two processes, and counts no more in the hour', async () => {
    await earlyInTheMinute();
    const stores = await storeOf();
    const name = `key_${Math.random()}`;
    const calls = Array.from({ length: 300 }, (_, i) => takeOne(stores[i % 2]!, name, 120, 3000));
    const taken = await Promise.all(calls);
    expect(taken.filter(({ allowed }) => allowed)).toHaveLength(120);
    const last = await takeOne(stores[0], name, 1000, 3000);
    expect(last).toMatchObject({ allowed: true, minute: { current: 121 }, hour: { current: 121 } });
    expect(last.minute.elapsed).toBeGreaterThanOrEqual(0);
    expect(last.minute.elapsed).toBeLessThanOrEqual(60);
    expect((await takeOne(stores[1], name, 1000, 121)).allowed).toBe(false);
  });
}

const inDatabase = (db: Database): RateLimitStore => ({ take: (quotas) => takeRateLimits(db, quotas) });

describe('The window in PostgreSQL', () => {
  countsExactly(async () => {
    const db = await newDatabase();
    const store = inDatabase(db);
    return [store, store];
  });

  it('lets the calls of the last window fade', async () => {
    await earlyInTheMinute();
    const db = await newDatabase();
    const store = inDatabase(db);
    for (let i = 0; i < 10; i++) await takeOne(store, 'key', 10, 100);
    expect((await takeOne(store, 'key', 10, 100)).allowed).toBe(false);
    await db.query('update rate set minute = minute - 1');
    const { allowed, minute } = await takeOne(store, 'key', 100, 100);
    expect([allowed, minute.before, minute.current]).toEqual([true, 10, 1]);
    await db.query('update rate set minute = minute - 2');
    expect((await takeOne(store, 'key', 1, 100)).minute).toMatchObject({ before: 0, current: 1 });
    await db.query('update rate set hour = hour - 2');
    expect((await takeOne(store, 'key', 9, 1)).hour).toMatchObject({ before: 0, current: 1 });
  });
});

describe.runIf(hasRedis)('The window in Redis', () => {
  let redis: RunningRedis;
  beforeAll(async () => {
    redis = await startRedis(atEnd);
  });
  countsExactly(async () => [await connectedTo(redis), await connectedTo(redis)]);

  it('gives way to counts of each process while Redis is down, and is shared again afterwards', async () => {
    await earlyInTheMinute();
    const store = await connectedTo(redis);
    const lines: unknown[] = [];
    const limits = () =>
      new RateLimits({
        quotas: {
          ...{ keyPerMinute: 5, keyPerHour: 100, accountPerMinute: 1e6, accountPerHour: 1e6 },
          ...{ publicPerMinute: 3, pagesPerMinute: 3, onionPerMinute: 3, unpaidPerHour: 1 },
        },
        secret: Buffer.alloc(32),
        isPayer: async () => true,
        shared: store,
        onError: (line) => lines.push(line),
      });
    const [first, second] = [limits(), limits()];
    const viewerOf = (id: string) => ({ ...viewer('read'), credentialId: id });
    const allowed = async (from: RateLimits, id: string, n: number) => {
      let count = 0;
      for (let i = 0; i < n; i++) if ((await from.take(viewerOf(id), '')).deniedUntil === undefined) count++;
      return count;
    };
    expect(await allowed(first, 'up', 3)).toBe(3);
    expect(await allowed(second, 'up', 9)).toBe(2);
    await redis.kill();
    const began = Date.now();
    expect(await allowed(first, 'down', 50)).toBe(5);
    expect(Date.now() - began).toBeLessThan(20_000);
    expect(lines.length).toBeGreaterThan(0);
    expect(JSON.stringify(lines)).not.toContain('down');
    redis.start();
    await eventually(async () => (await takeOne(store, 'probe', 1e6, 1e6).catch(() => undefined))?.allowed);
    await eventually(async () => (await allowed(first, `back ${Date.now()}`, 1)) === 1);
    const id = `both ${Date.now()}`;
    await eventually(async () => Date.now() - began > 2_500);
    expect((await allowed(first, id, 3)) + (await allowed(second, id, 9))).toBe(5);
  });
});
