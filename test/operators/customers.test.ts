/** An operator finds the customer behind a complaint, and ends the abuse without a refund. */
import { describe, expect, it } from 'vitest';
import { eventually, startFreehold, type TestAccount } from '../setup/freehold.ts';

const { db, newAccount, operator } = await startFreehold();

async function customer(): Promise<TestAccount & { number: string; ipv4: string }> {
  const account = await newAccount();
  await account.topUp(60);
  const { order_number: number } = (await account.rest('POST', '/v1/servers', { service_code: 'vps-1' })).body;
  const running = await eventually(async () => {
    const { body } = await account.rest('GET', `/v1/servers/${number}`);
    return body.status === 'running' && body;
  });
  return { ...account, number, ipv4: running.ipv4 };
}
const statusOf = async ({ rest, number }: { rest: TestAccount['rest']; number: string }) =>
  (await rest('GET', `/v1/servers/${number}`)).body.status;
const SUSPEND = 'mutation ($id: ID!) { suspendAccount(id: $id, reason: "Spam") { suspendedAt } }';
const suspendWithServers = ({ id }: TestAccount) =>
  operator('mutation ($id: ID!) { suspendAccount(id: $id, reason: "Spam", servers: OFF) { serversOff } }', { id });
const RESUME = 'mutation ($id: ID!) { resumeAccount(id: $id) { suspendedAt } }';
const REMOVE = `mutation ($number: ID!, $refund: Boolean!) {
  removeServer(orderNumber: $number, refund: $refund, reason: "Spam") { refundedUsd server { status accountId } } }`;
/** Ends the paid time of a server. */
const expire = (number: string) =>
  db.query(`update server set paid_until = now() - interval '1 second' where order_number = $1`, [number]);
/** Runs the next round of renewals at once. */
const renewals = () => db.query(`update task set run_at = now() where subject = 'cron:renewals'`);

describe('A search for accounts', () => {
  it('finds the customer by anything that a complaint or a payment names', async () => {
    const { id, email, number, ipv4, rest } = await customer();
    const key = (await rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'read' })).body;
    const topUp = (await rest('GET', '/v1/billing/topups')).body.data[0].order_number;
    for (const search of [id, email, email.toUpperCase(), number, ipv4, topUp, key.prefix, key.plaintext]) {
      const { data } = await operator('query ($search: Line!) { accounts(search: $search) { id } }', { search });
      expect([search, data.accounts]).toEqual([search, [{ id }]]);
    }
  });

  it.each(['', 'unknown@example.org', '203.0.113.250', 'fe80::1%eth0', "' or 1=1 --"])(
    'finds none by "%s"',
    async (search) => {
      const { data, errors } = await operator('query ($search: Line!) { accounts(search: $search) { id } }', {
        search,
      });
      expect(errors ? [] : data.accounts).toEqual([]);
    },
  );

  it('without words finds all, newest first', async () => {
    const [first, second] = [await newAccount(), await newAccount()];
    const { data } = await operator('{ accounts { id } }');
    expect(data.accounts.slice(0, 2)).toEqual([{ id: second.id }, { id: first.id }]);
  });

  it('is for the operator alone', async () => {
    const { graphql } = await newAccount();
    const { errors } = await graphql('{ accounts(search: "x") { id } }');
    expect(errors[0].extensions.code).toBe('insufficient_scope');
  });
});

describe('The operator deletes a server', () => {
  it('without a refund, even if it is protected, and the customer reads the reason', async () => {
    const { id, rest, number, balance } = await customer();
    await rest('PATCH', `/v1/servers/${number}`, { delete_protection: true });
    const before = await balance();
    const { data } = await operator(REMOVE, { number, refund: false });
    expect(data.removeServer).toMatchObject({ refundedUsd: 0, server: { accountId: id } });
    expect(await balance()).toBe(before);
    const [event] = await db.query<{ data: object }>(
      `select data from event where subject = $1 and data->>'reason' is not null`,
      [number],
    );
    expect(event!.data).toMatchObject({ reason: 'Spam', refunded: false });
  });

  it('with the refund of the unused hours, if the operator says so', async () => {
    const { number, balance } = await customer();
    const before = await balance();
    const { data } = await operator(REMOVE, { number, refund: true });
    expect(data.removeServer.refundedUsd).toBeGreaterThan(5);
    expect(await balance()).toBeCloseTo(before + data.removeServer.refundedUsd, 6);
  });
});

describe('The servers of a suspended account', () => {
  it('go off when the operator says so, and their customer cannot turn them on', async () => {
    const account = await customer();
    await operator(SUSPEND, { id: account.id });
    const OFF = `mutation ($number: ID!) { updateServer(orderNumber: $number, input: { powerState: OFF }) { server { status } } }`;
    expect((await operator(OFF, { number: account.number })).errors).toBeUndefined();
    await eventually(async () => (await statusOf(account)) === 'stopped');
    const turned = await account.rest('PATCH', `/v1/servers/${account.number}`, { power_state: 'on' });
    expect([turned.status, turned.body.code]).toEqual([403, 'account_suspended']);
  });

  it('go off together with it by choice, and come back after it with the rest of their paid time', async () => {
    const account = await customer();
    const off = (await account.rest('POST', '/v1/servers', { service_code: 'vps-1' })).body.order_number;
    await eventually(async () => (await statusOf({ ...account, number: off })) === 'running');
    await account.rest('PATCH', `/v1/servers/${off}`, { power_state: 'off' });
    await eventually(async () => (await statusOf({ ...account, number: off })) === 'stopped');
    const paidUntil = async () => (await account.rest('GET', `/v1/servers/${account.number}`)).body.paid_until;
    const before = [await paidUntil(), await account.balance()];
    expect((await suspendWithServers(account)).data.suspendAccount.serversOff).toBe(true);
    await eventually(async () => (await statusOf(account)) === 'stopped');
    // A repeated call does not turn servers on.
    await operator(SUSPEND, { id: account.id });
    await renewals();
    expect((await operator(RESUME, { id: account.id })).data.resumeAccount).toEqual({ suspendedAt: null });
    await eventually(async () => (await statusOf(account)) === 'running');
    expect([await paidUntil(), await account.balance()]).toEqual(before);
    expect(await statusOf({ ...account, number: off })).toBe('stopped');
  });

  it('go off later, too, and the customer hears of each step once', async () => {
    const account = await customer();
    await operator(SUSPEND, { id: account.id });
    await Promise.all([suspendWithServers(account), suspendWithServers(account)]);
    await eventually(async () => (await statusOf(account)) === 'stopped');
    const events = await db.query(
      `select data from event where subject = $1 and type = 'account.suspended' order by id`,
      [account.id],
    );
    expect(events).toEqual([{ data: { reason: 'Spam' } }, { data: { reason: 'Spam', servers: 'off' } }]);
  });

  it('go off as soon as they run, if they were being made', async () => {
    const account = await customer();
    const { body } = await account.rest('POST', '/v1/servers', { service_code: 'vps-1' });
    await suspendWithServers(account);
    const made = { ...account, number: body.order_number };
    await eventually(async () => {
      await renewals();
      return (await statusOf(made)) === 'stopped';
    });
    await operator(RESUME, { id: account.id });
    await eventually(async () => (await statusOf(made)) === 'running');
  });

  it('come back after a payment, if their paid time ended meanwhile', async () => {
    const account = await customer();
    await suspendWithServers(account);
    await eventually(async () => (await statusOf(account)) === 'stopped');
    await expire(account.number);
    await renewals();
    await eventually(async () => (await statusOf(account)) === 'suspended');
    await operator(RESUME, { id: account.id });
    await eventually(async () => {
      await renewals();
      return (await statusOf(account)) === 'running';
    });
  });

  it('follow when they are stable, if the suspension ended while they went off', async () => {
    const account = await customer();
    await suspendWithServers(account);
    await operator(RESUME, { id: account.id });
    await eventually(async () => {
      await renewals();
      const kept = await db.query('select from server where account_id = $1 and kept_off', [account.id]);
      return kept.length === 0 && (await statusOf(account)) === 'running';
    });
  });

  it('run until their paid time ends, do not renew, and resume after the suspension', async () => {
    const account = await customer();
    const { id, number } = account;
    await operator(SUSPEND, { id });
    expect(await statusOf(account)).toBe('running');
    const before = await account.balance();
    await expire(number);
    await renewals();
    await eventually(async () => (await statusOf(account)) === 'suspended');
    await renewals();
    // The round looks for servers that can resume, and leaves this one out.
    await eventually(
      async () => (await db.query(`select from task where subject = 'cron:renewals' and run_at > now()`)).length,
    );
    expect([await statusOf(account), await account.balance()]).toEqual(['suspended', before]);
    await operator(RESUME, { id });
    await renewals();
    await eventually(async () => (await statusOf(account)) === 'running');
    expect(await account.balance()).toBe(before - 6);
  });
});
