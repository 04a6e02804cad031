/** The traffic of machines on several engines. */
import { expect, it, onTestFinished } from 'vitest';
import type { Reading } from '../../../provisioning/servers/drivers/driver.ts';
import { METER_PROCESSES } from '../../../provisioning/servers/metering/meter.ts';
import { openEngines } from '../placement/engine-world.ts';

async function openMetered() {
  const lines: string[] = [];
  const shop = await openEngines(onTestFinished, { log: (line) => lines.push(line) });
  await shop.add('north');
  await shop.look();
  const [added, configured] = [await shop.running('zrh'), await shop.running('ams')];
  const count = async () => {
    await shop.tick(METER_PROCESSES.VPS);
    const rows = await shop.db.query<{ orderNumber: string; used: bigint }>(
      'select order_number, used_bytes as used from meter',
    );
    return Object.fromEntries(rows.map(({ orderNumber, used }) => [orderNumber, Number(used)]));
  };
  return { lines, shop, added, configured, count, north: shop.engine('north'), lxc: shop.engine('lxc') };
}

it('Each engine counts the machines of its own servers, and a silent one delays no other', async () => {
  const { added, configured, count, north, lxc } = await openMetered();
  north.sent.set(added, 1000);
  lxc.sent.set(configured, 2000);
  // The number of the server is right, and the engine is wrong.
  lxc.sent.set(added, 5_000_000);
  expect(await count()).toEqual({ [added]: 0, [configured]: 0 });
  north.down = true;
  north.sent.set(added, 1500);
  lxc.sent.set(configured, 2700);
  lxc.sent.set(added, 6_000_000);
  expect(await count()).toEqual({ [added]: 0, [configured]: 700 });
  north.down = false;
  expect(await count()).toEqual({ [added]: 500, [configured]: 700 });
});

it('An engine with odd answers costs only its own readings, and the log has its error', async () => {
  const { lines, shop, added, configured, count, north, lxc } = await openMetered();
  north.sent.set(added, 0);
  lxc.sent.set(configured, 0);
  await count();
  lxc.sent.set(configured, 100);
  north.sent.set(added, 1.5);
  expect(await count()).toEqual({ [added]: 0, [configured]: 100 });
  north.sent.set(added, 2 ** 60);
  lxc.sent.set(configured, 200);
  expect(await count()).toEqual({ [added]: 0, [configured]: 200 });
  const plain = north.meter.bind(north);
  north.meter = async () => (await plain()).map((one): Reading => ({ ...one, epoch: 'north\0', sentBytes: 10 }));
  lxc.sent.set(configured, 300);
  expect(await count()).toEqual({ [added]: 0, [configured]: 300 });
  north.meter = async () => {
    throw new TypeError('Its instances are no list.');
  };
  lxc.sent.set(configured, 400);
  expect(await count()).toEqual({ [added]: 0, [configured]: 400 });
  expect(lines).toEqual([
    'The engine north is not metered, until its counters come again. TypeError: Its instances are no list.',
  ]);
  north.meter = plain;
  north.sent.set(added, 7);
  expect(await count()).toEqual({ [added]: 7, [configured]: 400 });
  expect((await shop.read(added)).engine).toBe('north');
});

it('The log has an outage of the meter once, and the next outage again', async () => {
  const { lines, count, north } = await openMetered();
  north.down = true;
  await count();
  await count();
  expect(lines).toEqual([expect.stringMatching(/^The engine north is not metered, .* north does not answer/)]);
  north.down = false;
  await count();
  north.down = true;
  await count();
  expect(lines).toHaveLength(2);
});
