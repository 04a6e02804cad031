/** An open case of abuse can limit the network of a machine. The machine keeps running. */
import { beforeEach, describe, expect, it } from 'vitest';
import { closeCase, takeMeasure } from '../../../resolvers/accounts/cases.ts';
import { updateServer } from '../../../resolvers/servers/update.ts';
import { openCase } from '../../setup/customer-shop.ts';
import { newDatabase, truncate } from '../../setup/database.ts';
import { atEnd } from '../../setup/end.ts';
import { contextOf } from '../../setup/shop.ts';
import { openMeteredShop, TB, TIER_TB } from './meter-shop.ts';

const db = await newDatabase();
const shop = await openMeteredShop(atEnd, { db });
const { driver, metered, reads } = shop;
let accountId: string;
let order: string;
beforeEach(async () => {
  await truncate(db, 'server, task, meter, event, abuse_case');
  driver.speeds.length = 0;
  driver.counters.clear();
  accountId = await shop.account(0n);
  order = await metered(accountId);
});

/** Opens a case against the server, and limits its network. @returns the id of the case */
async function limited(): Promise<string> {
  const id = await opened();
  await limit(id);
  return id;
}
const opened = () => openCase({ db, accountId }, order);
const limit = (id: string) => takeMeasure(contextOf(shop, accountId), id, 'LIMIT_NETWORK', 'It scans.');
const close = (id: string) => closeCase(contextOf(shop, accountId), id, 'Solved');
/** The changes of speed after some minutes, without the order number. */
async function speeds(): Promise<string[]> {
  for (let i = 0; i < 3; i++) await shop.minute();
  return driver.speeds.map((line) => line.replace(`${order} `, ''));
}

describe('A machine with a limited network', () => {
  it('has 1 Mbit/s until the case is closed, and runs all the time', async () => {
    const id = await limited();
    expect(await speeds()).toEqual(['1']);
    await close(id);
    expect(await speeds()).toEqual(['1', '1000']);
    expect(await db.query('select status from server where order_number = $1', [order])).toEqual([
      { status: 'RUNNING' },
    ]);
  });

  it('stays limited until its last such case is closed', async () => {
    const [first, second] = [await limited(), await limited()];
    await close(first);
    expect(await speeds()).toEqual(['1']);
    await close(second);
    expect(await speeds()).toEqual(['1', '1000']);
  });

  it('is limited again when something else made it fast', async () => {
    await limited();
    await speeds();
    await driver.setSpeed({ order, generation: 1 }, 1000);
    expect(await speeds()).toEqual(['1', '1000', '1']);
  });

  it('is slow after the case, if it has used up its traffic', async () => {
    const id = await limited();
    await reads(order, { sentBytes: TIER_TB * TB + 1 });
    await close(id);
    expect(await speeds()).toEqual(['1', '10']);
  });

  it.each([
    ['reboots', { action: 'REBOOT' }],
    ['stops', { powerState: 'OFF' }],
  ] as const)('is limited while it %s', async (_, update) => {
    await limited();
    await updateServer(contextOf(shop, accountId), order, update);
    expect(await speeds()).toEqual(['1']);
  });

  it('comes limited out of a rebuild', async () => {
    await limited();
    await updateServer(contextOf(shop, accountId), order, { action: 'REBUILD' });
    await shop.work();
    expect(await db.query('select status from server where order_number = $1', [order])).toEqual([
      { status: 'RUNNING' },
    ]);
    const [reading] = await driver.meter(AbortSignal.timeout(5_000));
    expect(reading!.portMbps).toBe(1);
  });
});

describe('The customer', () => {
  const inbox = async () =>
    (await db.query<{ body: string }>('select body from message where account_id = $1 order by id', [accountId])).map(
      ({ body }) => body,
    );

  it('hears once of the limit, and of its end', async () => {
    const id = await limited();
    expect((await limit(id)).limitedAt).toBeInstanceOf(Date);
    await close(id);
    expect(await inbox()).toEqual([
      `We limit the network of ${order} to 1 Mbit/s until we close the case. Our reason: It scans.`,
      `We closed the case. The network of ${order} has no limit by us any more. Our result: Solved`,
    ]);
  });

  it('hears of no end while another case limits the network', async () => {
    const first = await limited();
    await limited();
    await close(first);
    expect((await inbox()).at(-1)).toBe('We closed the case. Our result: Solved');
  });
});

it('Nothing limits the network of a dedicated server, and the operator hears what to do instead', async () => {
  order = await shop.server(accountId, { kind: 'DEDICATED', serviceCode: 'ded-1' });
  const id = await opened();
  await expect(limit(id)).rejects.toThrow(/dedicated server\. Limit it in your switch, or turn it off/);
});
