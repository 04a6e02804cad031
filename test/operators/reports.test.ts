/** The reports of the operator: sales by tier and region, income by coin. */
import { describe, expect, it } from 'vitest';
import { asSuperuser } from '../setup/database.ts';
import { eventually, startFreehold } from '../setup/freehold.ts';

const { db, newAccount, operator } = await startFreehold();

const report = async (range = '') =>
  (
    await operator(`{ sales${range} { region serviceCode servers monthlyUsd averageMonthUsd ordered deleted churnPercent
      earnedUsd refundedUsd } income${range} { coin payments creditedUsd paidOutUsd } }`)
  ).data;

async function order(account: Awaited<ReturnType<typeof newAccount>>, serviceCode: string) {
  const { body } = await account.rest('POST', '/v1/servers', { service_code: serviceCode });
  const read = async () => (await account.rest('GET', `/v1/servers/${body.order_number}`)).body;
  await eventually(async () => (await read()).status === 'running');
  const remove = async () => {
    await account.rest('DELETE', `/v1/servers/${body.order_number}`);
  };
  return { ...body, remove } as { region: string; order_number: string; remove: () => Promise<void> };
}

describe('The reports', () => {
  it('are empty before the first sale', async () => {
    expect(await report()).toEqual({ sales: [], income: [] });
  });

  it('sum up the servers, prices and money of each tier and region', async () => {
    const account = await newAccount();
    await account.topUp(60);
    const kept = await order(account, 'vps-1');
    const ended = await order(account, 'vps-1');
    await order(account, 'vps-2');
    await ended.remove();
    const { sales, income } = await report();
    const prices = { 'vps-1': 6, 'vps-2': expect.any(Number) };
    expect(sales.map(({ serviceCode }: { serviceCode: string }) => serviceCode)).toEqual(Object.keys(prices));
    expect(sales[0]).toEqual({
      ...{ region: kept.region, serviceCode: 'vps-1', servers: 1, monthlyUsd: 6, averageMonthUsd: 6 },
      ...{ ordered: 2, deleted: 1, churnPercent: null, earnedUsd: 12 },
      refundedUsd: expect.closeTo(6, 0),
    });
    expect(sales[1]).toMatchObject({ servers: 1, ordered: 1, deleted: 0, refundedUsd: 0 });
    expect(sales[1].earnedUsd).toBe(sales[1].monthlyUsd);
    expect(income).toEqual([{ coin: 'USDC-BASE', payments: 1, creditedUsd: 60, paidOutUsd: 0 }]);
  });

  it('count as churn the deleted part of the servers that were there at the beginning', async () => {
    const account = await newAccount();
    await account.fund(60);
    const [first, second] = [await order(account, 'vps-1'), await order(account, 'vps-1')];
    await asSuperuser(
      db,
      `update server set created_at = created_at - interval '40 days' where order_number = any($1)`,
      [[first.order_number, second.order_number]],
    );
    await first.remove();
    const today = new Date().toISOString().slice(0, 10);
    const { sales } = await report(`(from: "${today}")`);
    expect(sales[0]).toMatchObject({ serviceCode: 'vps-1', churnPercent: 50 });
  });

  it('refuse a range that ends before it begins', async () => {
    const { errors } = await operator('{ sales(from: "2026-02-01", to: "2026-01-01") { region } }');
    expect(errors[0].message).toBe('to must not be before the beginning of the range.');
  });
});
