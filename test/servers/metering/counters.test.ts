/** The counters of machines: their sums over restarts, other machines, outages and months, and the samples of them. */
import { beforeEach, describe, expect, it } from 'vitest';
import { COUNT_READINGS } from '../../../entities/servers/metering/meter.ts';
import { DriverError } from '../../../provisioning/servers/drivers/driver.ts';
import { OBSERVER_PROCESS } from '../../../provisioning/servers/reconcile/observe.ts';
import { newDatabase, truncate } from '../../setup/database.ts';
import { atEnd } from '../../setup/end.ts';
import { openMeteredShop } from './meter-shop.ts';

const db = await newDatabase();
const shop = await openMeteredShop(atEnd, { db });
const { driver, metered, reads, used } = shop;
const accountId = await shop.account(0n);
beforeEach(() => truncate(db, 'server, task, finding, meter, meter_sample, event'));

const samples = () =>
  db.query(`select step, sent_bytes::int as "sentBytes" from meter_sample where step = 60 order by at`);
/** Moves the samples and the last reading into the past, as if minutes passed. */
const minutesPass = async (minutes: number) => {
  await db.query(`update meter_sample set at = at - $1 * interval '1 minute' where step = 60`, [minutes]);
  await db.query(`update meter set read_at = read_at - $1 * interval '1 minute'`, [minutes]);
};

describe('The traffic of a server', () => {
  it('begins with the second reading, because the machine may be older than the meter', async () => {
    const order = await shop.server(accountId);
    await reads(order, { sentBytes: 5_000 });
    expect(await used(order)).toBe(0);
    await reads(order, { sentBytes: 7_000 });
    expect(await used(order)).toBe(2_000);
  });

  it('counts everything since a start of the machine, even if the counter is larger than before', async () => {
    const order = await metered(accountId);
    await reads(order, { sentBytes: 1_000 });
    await reads(order, { sentBytes: 4_000, epoch: 'b' });
    expect(await used(order)).toBe(5_000);
  });

  it('counts everything from zero if a counter fell without a start, as after a change of the card', async () => {
    const order = await metered(accountId);
    await reads(order, { sentBytes: 9_000 });
    await reads(order, { sentBytes: 300 });
    expect(await used(order)).toBe(9_300);
  });

  it('goes on with the machine that replaces another, and ignores the old one', async () => {
    const order = await metered(accountId);
    await reads(order, { sentBytes: 1_000 });
    await db.query('update server set generation = 2 where order_number = $1', [order]);
    await reads(order, { sentBytes: 9_000 });
    expect(await used(order)).toBe(1_000);
    await reads(order, { sentBytes: 50, generation: 2, epoch: 'new' });
    expect(await used(order)).toBe(1_050);
  });

  it('stays while the machine is off, and counts the next start', async () => {
    const order = await metered(accountId);
    await reads(order, { sentBytes: 1_000 });
    driver.counters.delete(order);
    await shop.minute();
    await reads(order, { sentBytes: 10, epoch: 'b' });
    expect(await used(order)).toBe(1_010);
  });

  it('is counted once if the card is hidden for a while', async () => {
    const order = await metered(accountId);
    await reads(order, { sentBytes: 1_000 });
    await reads(order, { sentBytes: null, receivedBytes: null, sentPackets: null });
    await reads(order, { sentBytes: 1_500 });
    expect(await used(order)).toBe(1_500);
    await reads(order, { sentBytes: null, epoch: 'b' });
    await reads(order, { sentBytes: 1_700, epoch: 'b' });
    expect(await used(order)).toBe(3_200);
  });

  it('survives a restart of the service, and an outage of the engine', async () => {
    const order = await metered(accountId);
    await reads(order, { sentBytes: 1_000 });
    driver.before = () => {
      throw new DriverError('unreachable', 'down for the test');
    };
    await reads(order, { sentBytes: 2_000 });
    driver.before = () => {};
    expect(await used(order)).toBe(1_000);
    const next = await openMeteredShop(atEnd, { db, folder: shop.folder });
    await next.reads(order, { sentBytes: 3_000 });
    expect(await used(order)).toBe(3_000);
  });

  it('begins anew with each month', async () => {
    const order = await metered(accountId);
    await reads(order, { sentBytes: 1_000 });
    await shop.monthEnds(order);
    await reads(order, { sentBytes: 1_200 });
    expect(await used(order)).toBe(200);
  });

  it('ignores a reading that is older than the last one', async () => {
    const order = await metered(accountId);
    await reads(order, { sentBytes: 1_000 });
    const reading = { order, generation: 1, epoch: 'a', sentBytes: 400, receivedBytes: 0, sentPackets: 0, cpuNs: 0 };
    const late = [JSON.stringify([reading]), new Date(Date.now() - 60_000), 'VPS'];
    expect(await db.transaction((tx) => COUNT_READINGS.all(tx, late))).toEqual([]);
    expect(await used(order)).toBe(1_000);
  });

  it('belongs to servers of one kind alone', async () => {
    const order = await metered(accountId, { kind: 'DEDICATED', serviceCode: 'ded-1' });
    expect(await db.query('select order_number from meter')).toEqual([]);
    await shop.minute('DEDICATED');
    expect(await used(order)).toBe(0);
  });
});

describe('An engine that does not answer', () => {
  it('delays no servers of the other kind', async () => {
    const silent = new AbortController();
    let asked = false;
    driver.before = (signal) =>
      new Promise((_, reject) => {
        asked = true;
        for (const one of [signal, silent.signal]) one.addEventListener('abort', () => reject(one.reason));
      });
    const hung = shop.minute('DEDICATED').catch(() => {});
    while (!asked) await new Promise(setImmediate);
    driver.before = () => {};
    const order = await metered(accountId);
    await reads(order, { sentBytes: 700 });
    expect(await used(order)).toBe(700);
    silent.abort(new DriverError('unreachable', 'The test gives up.'));
    await hung;
  });
});

describe('A sample', () => {
  it('is the sum of a counter at a minute, over all starts', async () => {
    const order = await metered(accountId);
    await minutesPass(1);
    await reads(order, { sentBytes: 1_000 });
    await minutesPass(1);
    await reads(order, { sentBytes: 10, epoch: 'b' });
    expect(await samples()).toEqual([0, 1_000, 1_010].map((sentBytes) => ({ step: 60, sentBytes })));
    expect(await db.query(`select count(*)::int as hours from meter_sample where step = 3600`)).toEqual([{ hours: 1 }]);
  });

  it('lives for a day, or for 60 days if it belongs to an hour', async () => {
    const order = await metered(accountId);
    await db.query(
      `insert into meter_sample (order_number, step, at, sent_bytes, received_bytes)
        select $1, step, now() - age, 0, 0 from (values (60, interval '25 hours'), (60, interval '23 hours'),
          (3600, interval '59 days'), (3600, interval '61 days')) as old(step, age)`,
      [order],
    );
    await db.query(
      `insert into meter (order_number, epoch, read_at, month) values ('SRV-OLD', '', now() - interval '61 days', '2020-01')`,
    );
    await shop.tick(OBSERVER_PROCESS);
    const kept = await db.query(
      `select step, count(*)::int as samples from meter_sample where at < now() - interval '2 hours' group by 1 order by 1`,
    );
    expect(kept).toEqual([
      { step: 60, samples: 1 },
      { step: 3600, samples: 1 },
    ]);
    expect(await db.query('select order_number from meter')).toEqual([{ orderNumber: order }]);
  });
});

describe('A machine that abuses the network', () => {
  const open = () => db.query(`select order_number, detail from finding where resolved_at is null`);

  it('is a finding of the operator while it sends too many packets', async () => {
    const [loud, quiet] = [await metered(accountId), await metered(accountId)];
    driver.counters.set(quiet, { ...driver.counters.get(quiet), sentPackets: 49_000 * 60 });
    await minutesPass(1);
    await reads(loud, { sentPackets: 60_000 * 60 });
    expect(await open()).toEqual([
      { orderNumber: loud, detail: expect.stringMatching(/^The machine sent (5|6)\d{4} packets a second\.$/) },
    ]);
    await shop.minute('DEDICATED');
    await shop.tick(OBSERVER_PROCESS);
    expect(await open()).toHaveLength(1);
    await minutesPass(1);
    await shop.minute();
    expect(await open()).toEqual([]);
    expect(await db.query(`select data->>'kind' as kind from event where type = 'finding.reported'`)).toEqual([
      { kind: 'TRAFFIC' },
    ]);
  });

  it('is a finding while another card passes for its own', async () => {
    const order = await metered(accountId);
    await reads(order, { isDisguised: true });
    expect(await open()).toMatchObject([{ orderNumber: order, detail: expect.stringContaining('Several cards') }]);
    await reads(order, { isDisguised: false });
    expect(await open()).toEqual([]);
  });

  it('is a finding while its state is too long to read, and its counters wait', async () => {
    const order = await metered(accountId);
    await reads(order, { sentBytes: 1_000 });
    await reads(order, { epoch: '', sentBytes: null, isUnread: true });
    expect(await open()).toMatchObject([{ orderNumber: order, detail: expect.stringContaining('too long') }]);
    await reads(order, { epoch: 'a', sentBytes: 1_500, isUnread: false });
    expect(await open()).toEqual([]);
    expect(await used(order)).toBe(1_500);
  });

  it('stops no meter by counters that it makes up, in one reading or in many', async () => {
    const [liar, honest] = [await metered(accountId), await metered(accountId)];
    await reads(liar, { sentBytes: 2 ** 63, sentPackets: 10 ** 12 });
    expect(await open()).toMatchObject([{ orderNumber: liar, detail: expect.stringContaining('does not see') }]);
    await db.query(
      'update meter set used_bytes = 9e18, total_sent_bytes = 9e18, total_received_bytes = 9e18, total_cpu_ns = 9e18 where order_number = $1',
      [liar],
    );
    const most = Number.MAX_SAFE_INTEGER;
    driver.counters.set(honest, { ...driver.counters.get(honest), sentBytes: 700 });
    for (const epoch of ['b', 'c', 'd'])
      await reads(liar, { epoch, sentBytes: most, receivedBytes: most, sentPackets: most, cpuNs: most });
    expect([await used(liar), await used(honest)]).toEqual([9e18, 700]);
  });

  it('is a finding while it hides its card, until it is off', async () => {
    const order = await metered(accountId);
    await reads(order, { sentBytes: null });
    expect(await open()).toMatchObject([{ orderNumber: order, detail: expect.stringContaining('does not see') }]);
    driver.counters.delete(order);
    await shop.minute();
    expect(await open()).toEqual([]);
  });
});
