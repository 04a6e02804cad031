/** The traffic of machines on several engines. */
import { expect, it, onTestFinished } from 'vitest';
import { METER_PROCESSES } from '../../../provisioning/servers/metering/meter.ts';
import { openEngines } from '../placement/engine-world.ts';

it('Each engine counts the machines of its own servers, and a silent one delays no other', async () => {
  const shop = await openEngines(onTestFinished);
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
  const [north, lxc] = [shop.engine('north'), shop.engine('lxc')];
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
