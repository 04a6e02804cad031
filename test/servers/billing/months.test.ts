import { describe, expect, it } from 'vitest';
import { eventually, startFreehold, type TestAccount } from '../../setup/freehold.ts';

const { db, newAccount, operator } = await startFreehold();

/** Returns a running server whose paid time has ended. */
async function dueServer({ rest }: TestAccount, autoRenew = true): Promise<string> {
  const { body } = await rest('POST', '/v1/servers', { service_code: 'vps-1', auto_renew: autoRenew });
  const path = `/v1/servers/${body.order_number}`;
  await eventually(async () => (await rest('GET', path)).body.status === 'running');
  await db.query(`update server set paid_until = now() - interval '1 hour' where order_number = $1`, [
    body.order_number,
  ]);
  return path;
}
const tick = () => db.query(`update task set run_at = now() where subject = 'cron:renewals' and leased_by is null`);
const becomes = (account: TestAccount, path: string, status: string) =>
  eventually(async () => {
    await tick();
    const { body } = await account.rest('GET', path);
    return body.status === status && body;
  });

describe('A server whose month has ended', () => {
  it('continues if the balance pays for the next month, which the usage shows', async () => {
    const account = await newAccount();
    await account.fund(100);
    const path = await dueServer(account);
    await eventually(async () => {
      await tick();
      return Date.parse((await account.rest('GET', path)).body.paid_until) > Date.now();
    });
    const { body } = await account.rest('GET', '/v1/account/usage');
    expect(body.data[0]).toMatchObject({ kind: 'renewal', amount_usd: -6, hours: 730, order_number: path.slice(12) });
    expect(await account.balance()).toBe(88);
    expect(body.total_usd).toBe(88);
  });

  it('is suspended if the balance does not suffice, and runs again after the next top-up', async () => {
    const account = await newAccount();
    await account.fund(30);
    const path = await dueServer(account);
    await db.query(`update server set price_month_micros = 25000000 where order_number = $1`, [path.slice(12)]);
    expect(await becomes(account, path, 'suspended')).toMatchObject({ poll_after_seconds: null });
    const { body: top } = await account.rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto: 'USDC-BASE' });
    await eventually(async () => (await account.rest('GET', path)).body.status === 'running');
    expect((await account.rest('GET', `/v1/billing/topups/${top.order_number}`)).body.status).toBe('confirmed');
    expect(await account.balance()).toBe(29);
    const events = await db.query<{ type: string }>('select type from event where subject = $1 order by id', [
      path.slice(12),
    ]);
    expect(events.map(({ type }) => type).slice(-3)).toEqual(['server.suspended', 'server.running', 'server.renewed']);
  });

  it('resumes at once when its owner turns automatic renewal on, without waiting for the next round', async () => {
    const account = await newAccount();
    await account.fund(30);
    const path = await dueServer(account, false);
    await becomes(account, path, 'suspended');
    await db.query(`update task set run_at = now() + interval '1 day' where subject = 'cron:renewals'`);
    for (const asked of [{ power_state: 'on' }, { action: 'rebuild' }, { auto_renew: true, power_state: 'on' }]) {
      const { status, body } = await account.rest('PATCH', path, asked);
      expect([status, body.code]).toEqual([422, 'server_suspended']);
    }
    expect((await account.rest('GET', path)).body).toMatchObject({ status: 'suspended', auto_renew: false });
    expect((await account.rest('PATCH', path, { auto_renew: true })).body).toMatchObject({ status: 'suspended' });
    await eventually(async () => (await account.rest('GET', path)).body.status === 'running');
    expect(await account.balance()).toBe(18);
    const { body } = await account.rest('GET', '/v1/account/usage');
    expect(body.data[0]).toMatchObject({ kind: 'renewal', amount_usd: -6, hours: 730, order_number: path.slice(12) });
  });

  it('gets its month back if it is deleted while it resumes, and is not turned on any more', async () => {
    const account = await newAccount();
    await account.fund(30);
    const path = await dueServer(account, false);
    await becomes(account, path, 'suspended');
    await Promise.all([
      account.rest('PATCH', path, { auto_renew: true }),
      ...[1, 2, 3].map(() => account.rest('DELETE', path)),
    ]);
    await eventually(async () => (await account.rest('GET', path)).status === 404);
    const balance = await account.balance();
    expect(24 - balance).toBeLessThan(0.01); // One hour of the month, if it had resumed by then.
    const { data } = await operator('{ books { balanced } }');
    expect(data.books.balanced).toBe(true);
  });

  it('can be deleted while it is suspended, without a refund', async () => {
    const account = await newAccount();
    await account.fund(30);
    const path = await dueServer(account, false);
    await becomes(account, path, 'suspended');
    const { status, body } = await account.rest('DELETE', path);
    expect([status, body.status, body.refunded_usd]).toEqual([200, 'deleting', 0]);
    await eventually(async () => (await account.rest('GET', path)).status === 404);
    const { data } = await operator('{ books { balanced } }');
    expect(data.books.balanced).toBe(true);
  });
});
