/** The clock of the database decides. The clock of a process may be a year ahead. */
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { findBalance } from '../../resolvers/accounts/account.ts';
import { RequestAudit } from '../../resolvers/accounts/request-audit.ts';
import { findUsage } from '../../resolvers/accounts/usage.ts';
import { deleteServer } from '../../resolvers/servers/delete.ts';
import { orderServer } from '../../resolvers/servers/order.ts';
import { finish, openCustomerShop } from '../setup/customer-shop.ts';

const YEAR_MS = 365 * 86_400_000;
const setYearAhead = () => vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + YEAR_MS });
afterEach(() => void vi.useRealTimers());

const ORDER = { serviceCode: 'vps-1', region: 'ams', os: 'debian-13', labels: {}, autoRenew: true };

describe('A process whose clock is a year ahead', () => {
  it('tells by the clock of the database until when the balance lasts, and what it was used for', async () => {
    const shop = await openCustomerShop(onTestFinished);
    const { server } = await orderServer(shop.context, ORDER);
    await finish(shop, server.orderNumber, 'RUNNING');
    const until = (await findBalance(shop.context)).fundedUntil!;
    setYearAhead();
    const { fundedUntil } = await findBalance(shop.context);
    expect(fundedUntil!.getTime() - until.getTime()).toBeLessThan(60_000);
    const usage = await findUsage(shop.context, { limit: 50 }, {});
    expect(usage.data.map(({ orderNumber }) => orderNumber)).toContain(server.orderNumber);
  });

  it('gives up no machine that has time for its proof', async () => {
    const shop = await openCustomerShop(onTestFinished, { proofSeconds: { VPS: 3600, DEDICATED: 3600 } });
    const observe = shop.driver.observe.bind(shop.driver);
    let isProven = false;
    shop.driver.observe = async (...given) => ({ ...(await observe(...given)), proven: isProven });
    const { server } = await orderServer(shop.context, ORDER);
    for (let i = 0; i < 3; i++) await shop.work();
    setYearAhead();
    for (let i = 0; i < 3; i++) {
      await shop.db.query('update task set run_at = now() where subject = $1', [server.orderNumber]);
      await shop.work();
    }
    isProven = true;
    await finish(shop, server.orderNumber, 'RUNNING');
    expect(shop.driver.journal().map((line) => line.replace(/SRV-\w+ /, ''))).toEqual(['create 1']);
  });

  it('refunds the unused hours by the clock of the database', async () => {
    const shop = await openCustomerShop(onTestFinished);
    const { server } = await orderServer(shop.context, ORDER);
    await finish(shop, server.orderNumber, 'RUNNING');
    const { monthlyCostMicros } = await findBalance(shop.context);
    setYearAhead();
    const { refundedMicros } = await deleteServer(shop.context, server.orderNumber);
    expect(Number(refundedMicros)).toBeGreaterThan(Number(monthlyCostMicros) * 0.99);
  });

  it('dates the requests in the audit log by the clock of the database', async () => {
    const shop = await openCustomerShop(onTestFinished);
    setYearAhead();
    const { viewer, requestId } = shop.context;
    const audit = new RequestAudit(shop.db);
    audit.add({ viewer, requestId }, { method: 'GET', path: '/v1/servers', status: 200 });
    await audit.flush();
    expect(
      await shop.db.query(
        `select created_at > now() + interval '1 minute' as ahead from audit_entry where method = 'GET'`,
      ),
    ).toEqual([{ ahead: false }]);
  });
});
