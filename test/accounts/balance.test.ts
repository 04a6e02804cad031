/** The balance says until when it pays the renewals. */
import { describe, expect, it } from 'vitest';
import { eventually, startFreehold } from '../setup/freehold.ts';

const { db, newAccount, operator } = await startFreehold();
const HOUR_MS = 3_600_000;
const MONTH_HOURS = 730;

async function funded(usd: number) {
  const account = await newAccount();
  const adjustment = `accountId: "${account.id}", amountUsd: ${usd}, reason: "Funds", key: "${account.id}"`;
  await operator(`mutation { adjustBalance(${adjustment}) { balanceUsd } }`);
  return account;
}

/** An account with servers that are paid for these hours from now on, and this balance. */
async function withServers(usd: number, ...paid: { hours: number; tier?: string }[]) {
  const prices: Record<string, number> = { 'vps-1': 6, 'vps-2': 12 };
  const price = ({ tier = 'vps-1' }) => prices[tier]!;
  const sum = paid.reduce((total, one) => total + price(one), 0);
  const account = await funded(sum + usd);
  const now = Date.now();
  for (const { hours, tier = 'vps-1' } of paid) {
    const { body } = await account.rest('POST', '/v1/servers', { service_code: tier });
    await eventually(
      async () => (await account.rest('GET', `/v1/servers/${body.order_number}`)).body.status === 'running',
    );
    const until = new Date(now + hours * HOUR_MS);
    await db.query('update server set paid_until = $2 where order_number = $1', [body.order_number, until]);
  }
  const fundedHours = async () => {
    const { funded_until } = (await account.rest('GET', '/v1/account/balance')).body;
    return funded_until && Math.round((Date.parse(funded_until) - now) / HOUR_MS);
  };
  return { ...account, fundedHours };
}

describe('The balance', () => {
  it.each([
    [24, [{ hours: 700 }], 700 + 4 * MONTH_HOURS],
    [23, [{ hours: 700 }], 700 + 3 * MONTH_HOURS],
    [0, [{ hours: 700 }], 700],
    [0, [{ hours: 700 }, { hours: 100 }], 100],
    [6, [{ hours: 700 }, { hours: 100 }], 700],
    [18, [{ hours: 700, tier: 'vps-2' }, { hours: 100 }], 100 + MONTH_HOURS],
    [30, [{ hours: 700, tier: 'vps-2' }, { hours: 100 }], 700 + MONTH_HOURS],
  ])('of %d USD pays renewals of servers paid for %j until hour %d', async (usd, paid, hours) => {
    expect(await (await withServers(usd, ...paid)).fundedHours()).toBe(hours);
  });

  it('ends now for a suspended server that it does not pay, and never without renewals', async () => {
    const { id, fundedHours, rest } = await withServers(0, { hours: 700 });
    await db.query(`update server set paid_until = now() - interval '1 day' where account_id = $1`, [id]);
    expect(await fundedHours()).toBe(0);
    const { body } = await rest('GET', '/v1/servers');
    await rest('PATCH', `/v1/servers/${body.data[0].order_number}`, { auto_renew: false });
    expect(await fundedHours()).toBeNull();
  });

  it('counts the announced price, if the next month begins late enough for it', async () => {
    const { id, fundedHours, rest } = await withServers(24, { hours: 700 });
    const announce = (hours: number) =>
      db.query(
        `update server set next_price_micros = 12000000, next_price_from = paid_until + $2 * interval '1 hour'
          where account_id = $1`,
        [id, hours],
      );
    const cost = async () => (await rest('GET', '/v1/account/balance')).body.monthly_cost_usd;
    await announce(1);
    expect([await cost(), await fundedHours()]).toEqual([6, 700 + 4 * MONTH_HOURS]);
    await announce(0);
    expect([await cost(), await fundedHours()]).toEqual([12, 700 + 2 * MONTH_HOURS]);
  });

  it('counts the month that a new server has paid', async () => {
    const account = await funded(12);
    await account.rest('POST', '/v1/servers', { service_code: 'vps-1' });
    const { funded_until } = (await account.rest('GET', '/v1/account/balance')).body;
    expect(Math.round((Date.parse(funded_until) - Date.now()) / HOUR_MS)).toBe(2 * MONTH_HOURS);
  });
});
