/** The sample catalog belongs to simulated machines. Real ones begin with an empty catalog, which the operator fills. */
import { describe, expect, it } from 'vitest';
import { Database } from '../../entities/database/database.ts';
import { ManualDriver } from '../../provisioning/servers/drivers/manual.ts';
import { ManualJobs } from '../../provisioning/servers/manual-jobs.ts';
import { atEnd } from '../setup/end.ts';
import { startFreehold } from '../setup/freehold.ts';
import { databaseBefore } from '../setup/migration.ts';
import { openShop, type Shop } from '../setup/shop.ts';
import { VAULT } from '../setup/vault.ts';

const REAL = {
  ...{ LXC_ENDPOINTS: 'unix:/nowhere/lxd.socket', DEDICATED_DRIVER: 'manual', ALLOW_SIMULATED: 'true' },
};
const { anonymous, operator } = await startFreehold(REAL);

/** Starts the provisioning of a shop with real machines. */
const startReal = async ({ db, newProvisioning }: Shop) => {
  const driver = new ManualDriver(new ManualJobs(db, VAULT));
  await newProvisioning({ drivers: { VPS: driver, DEDICATED: driver } }).prepare();
};
const itemsOf = async ({ db }: Pick<Shop, 'db'>) =>
  (await db.query<{ count: number }>('select count(*)::int as count from catalog_item'))[0]!.count;

describe('An installation with real machines', () => {
  it('begins with an empty catalog', async () => {
    const { body } = await anonymous('GET', '/v1/catalog');
    expect(body).toEqual({ vps: [], dedicated: [], bastions: [], images: [] });
    expect((await anonymous('GET', '/v1/billing/bonus-tiers')).body.data).toEqual([]);
    const { data } = await operator('{ regions { code } tiers { code } images { code } stock { total } }');
    expect(data).toEqual({ regions: [], tiers: [], images: [], stock: [] });
  });

  it('sells what the operator adds, also after the next start', async () => {
    const { errors } = await operator(`mutation {
      addRegion(input: {code: "osl", name: "Oslo", city: "Oslo", country: "NO"}) { code }
      addVpsTier(input: {code: "vps-1", name: "VPS 1", vcpus: 1, memoryMb: 1024, diskGb: 10, trafficTb: 1, priceMonthUsd: 5}) { code }
      setStock(region: "osl", serviceCode: "vps-1", total: 5) { free }
    }`);
    expect(errors).toBeUndefined();
    const { data } = await operator('{ regions { code } tiers { code priceMonthUsd } stock { total free } }');
    expect(data).toEqual({
      regions: [{ code: 'osl' }],
      tiers: [{ code: 'vps-1', priceMonthUsd: 5 }],
      // No host has room yet.
      stock: [{ total: 5, free: 0 }],
    });
  });
});

describe('A catalog of simulated machines', () => {
  it('is empty once the machines are real', async () => {
    const shop = await openShop(atEnd);
    await shop.provisioning.prepare();
    expect(await itemsOf(shop)).toBeGreaterThan(10);
    await Promise.all([startReal(shop), startReal(shop)]);
    expect(await itemsOf(shop)).toBe(0);
  });

  it.each([
    ['has a server', async (shop: Shop) => void (await shop.server(await shop.account(0n)))],
    [
      'has been changed by an operator',
      async ({ db }: Shop) =>
        void (await db.query(
          `insert into event (id, account_id, type, subject, data) values ('evt_1', 'operator', 'catalog.updated', 'vps-1', '{}')`,
        )),
    ],
  ])('stays if it %s', async (_, use) => {
    const shop = await openShop(atEnd);
    const before = await itemsOf(shop);
    await use(shop);
    await startReal(shop);
    expect(await itemsOf(shop)).toBe(before);
  });

  it('stays in an installation that is older than this rule', async () => {
    const { url, db: old } = await databaseBefore('0035', atEnd);
    await old.query(`insert into account (id, kind) values ('acct_old', 'AGENT')`);
    const db = await Database.open(url);
    atEnd(() => db.close());
    const shop = await openShop(atEnd, { db });
    const before = await itemsOf(shop);
    await startReal(shop);
    expect(before).toBeGreaterThan(10);
    expect(await itemsOf(shop)).toBe(before);
  });
});
