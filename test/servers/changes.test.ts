/** Changes of servers over REST, with simulated machines. */
import { describe, expect, it } from 'vitest';
import { startFreehold, type TestAccount } from '../setup/freehold.ts';

const freehold = await startFreehold();
const { db, newAccount, operator } = freehold;
const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILZo0JzYJEHChHBt6zG/B6cGUZpbFXeUqaufc1ki+RX/ ada@laptop';

interface Subject {
  account: TestAccount;
  order_number: string;
  ipv4: string;
  ipv6: string;
  ipv6_prefix: string;
}
async function runningServer(usd = 60, more: object = {}): Promise<Subject> {
  const account = await newAccount();
  await account.fund(usd);
  const { body } = await account.rest('POST', '/v1/servers', { service_code: 'vps-1', ...more });
  const { body: server } = await account.rest('GET', `/v1/servers/${body.order_number}?wait_for=running`);
  expect(server.status).toBe('running');
  return { account, ...server };
}
const patch = ({ account, order_number }: Subject, body: object) =>
  account.rest('PATCH', `/v1/servers/${order_number}`, body);
const becomes = async ({ account, order_number }: Subject, status: string) => {
  const { body } = await account.rest('GET', `/v1/servers/${order_number}?wait_for=${status}`);
  expect(body).toMatchObject({ status, failure: null, poll_after_seconds: null });
  return body;
};

describe('Power', () => {
  it('goes off and on, and a repeated request changes nothing', async () => {
    const server = await runningServer();
    expect((await patch(server, { power_state: 'on' })).body.status).toBe('running');
    expect((await patch(server, { power_state: 'off' })).body).toMatchObject({
      status: 'stopping',
      charged_usd: 0,
      root_password: null,
      poll_after_seconds: 2,
    });
    await becomes(server, 'stopped');
    expect((await patch(server, { power_state: 'off' })).body.status).toBe('stopped');
    expect((await patch(server, { power_state: 'on' })).body.status).toBe('starting');
    await becomes(server, 'running');
  });

  it.each(['reboot', 'reset'])('%s ends in running, with its events', async (action) => {
    const server = await runningServer();
    expect((await patch(server, { action })).body.status).toBe('rebooting');
    await becomes(server, 'running');
    const events = await db.query<{ type: string; data: object }>(
      'select type, data from event where subject = $1 order by id desc limit 2',
      [server.order_number],
    );
    expect(events).toMatchObject([
      { type: 'server.running', data: { operation: action } },
      { type: 'server.updated', data: { status: 'REBOOTING', operation: action } },
    ]);
  });
});

describe('A rebuild', () => {
  it('takes image, keys, user data and password, keeps the addresses, and ends in running', async () => {
    const server = await runningServer();
    const { body: key } = await server.account.rest('POST', '/v1/ssh-keys', { public_key: KEY });
    const asked = { action: 'rebuild', os: 'alma-9', ssh_key_ids: [key.id], root_password: 'correct horse 9' };
    const { status, body } = await patch(server, { ...asked, user_data: '#cloud-config' });
    expect(status).toBe(200);
    expect(body).toMatchObject({ status: 'rebuilding', os: 'debian-13', root_password: 'correct horse 9' });
    expect(await becomes(server, 'running')).toMatchObject({
      os: 'alma-9',
      ssh_key_ids: [key.id],
      ipv4: server.ipv4,
      ipv6: server.ipv6,
    });
    const [row] = await db.query<object>(
      'select user_data, root_password, change, ssh_public_keys from server where order_number = $1',
      [server.order_number],
    );
    expect(row).toMatchObject({ userData: null, rootPassword: null, change: null });
    // A second rebuild keeps the keys, so it generates no password.
    expect((await patch(server, { image: 'debian-12', action: 'rebuild' })).body.root_password).toBe(null);
    expect(await becomes(server, 'running')).toMatchObject({ os: 'debian-12', ssh_key_ids: [key.id] });
  });

  it('without any key generates a password, and shows it once', async () => {
    const server = await runningServer();
    const { body } = await patch(server, { action: 'rebuild' });
    expect(body.root_password).toMatch(/^[0-9A-Za-z]{24}$/);
    expect(await becomes(server, 'running')).not.toHaveProperty('root_password');
  });

  it('keeps a key that the customer removed from the account', async () => {
    const account = await newAccount();
    await account.fund(30);
    const { body: key } = await account.rest('POST', '/v1/ssh-keys', { public_key: KEY });
    const { body: ordered } = await account.rest('POST', '/v1/servers', { service_code: 'vps-1' });
    const server = { account, ...ordered } as Subject;
    await becomes(server, 'running');
    await account.rest('DELETE', `/v1/ssh-keys/${key.id}`);
    expect((await patch(server, { action: 'rebuild' })).body.root_password).toBe(null);
    expect((await becomes(server, 'running')).ssh_key_ids).toEqual([key.id]);
  });

  it.each([
    [{ os: 'plan9' }, 'unknown_os'],
    [{ os: 'vps-1' }, 'unknown_os'],
    [{ ssh_key_ids: ['sshkey_01h0000000000000000000000a'] }, 'unknown_ssh_key'],
    [{ root_password: 'short' }, 'validation_failed'],
  ])('with %j is refused as %s', async (more, code) => {
    const server = await runningServer();
    const { status, body } = await patch(server, { action: 'rebuild', ...more });
    expect([status, body.code]).toEqual([422, code]);
    expect((await server.account.rest('GET', `/v1/servers/${server.order_number}`)).body.status).toBe('running');
  });
});

describe('A resize', () => {
  it('charges the difference, moves the place, and is refunded at the new price', async () => {
    const server = await runningServer(60, { region: 'kef' });
    const places = async () =>
      (
        await db.query<{ n: number }>(
          `select count(order_number)::int as n from place where region_code = 'kef' and service_code in ('vps-1', 'vps-3')
            group by service_code order by service_code`,
        )
      ).map(({ n }) => n);
    expect(await places()).toEqual([1, 0]);
    await patch(server, { power_state: 'off' });
    await becomes(server, 'stopped');
    const { body } = await patch(server, { plan: 'vps-3', labels: { size: 'm' } });
    expect(body).toMatchObject({ status: 'resizing', service_code: 'vps-1', charged_usd: 18, labels: { size: 'm' } });
    const resized = await becomes(server, 'stopped');
    expect(resized).toMatchObject({ service_code: 'vps-3', price_month_usd: 24 });
    expect(await places()).toEqual([0, 1]);
    expect(await server.account.balance()).toBe(36);
    const { body: deleted } = await server.account.rest('DELETE', `/v1/servers/${server.order_number}`);
    expect(deleted.refunded_usd).toBeGreaterThan(23.9);
    expect(deleted.refunded_usd).toBeLessThanOrEqual(24);
    const { data } = await operator('{ books { balanced firstMismatch } }');
    expect(data.books).toEqual({ balanced: true, firstMismatch: null });
  });

  it('to a tier that has become cheaper gives the unused hours of the difference back, and keeps the rest refundable', async () => {
    const server = await runningServer();
    await patch(server, { power_state: 'off' });
    await becomes(server, 'stopped');
    const setPrice = (micros: number) =>
      db.query(`update catalog_item set price_month_micros = $1 where code = 'vps-2'`, [micros]);
    const [{ was }] = (await db.query<{ was: number }>(
      `select price_month_micros::int as was from catalog_item where code = 'vps-2'`,
    )) as [{ was: number }];
    await setPrice(2_000_000);
    const { body } = await patch(server, { service_code: 'vps-2' });
    await setPrice(was);
    expect(body).toMatchObject({ status: 'resizing', charged_usd: 0 });
    expect(await becomes(server, 'stopped')).toMatchObject({ service_code: 'vps-2', price_month_usd: 2 });
    const money = async () => {
      const { balance_usd, pending_usd } = (await server.account.rest('GET', '/v1/account/balance')).body;
      return balance_usd + pending_usd;
    };
    expect(await money()).toBeGreaterThan(57.9);
    expect(await money()).toBeLessThanOrEqual(58);
    await server.account.rest('DELETE', `/v1/servers/${server.order_number}`);
    expect(await money()).toBeGreaterThan(59.9);
    expect(await money()).toBeLessThanOrEqual(60);
    const { body: usage } = await server.account.rest('GET', '/v1/account/usage');
    expect(usage.data).toContainEqual(
      expect.objectContaining({ kind: 'refund', description: 'Resize of vps-1 to vps-2' }),
    );
    const { data } = await operator('{ books { balanced firstMismatch } }');
    expect(data.books).toEqual({ balanced: true, firstMismatch: null });
  });

  it('costs half the difference for half a month', async () => {
    const server = await runningServer();
    await patch(server, { power_state: 'off' });
    await becomes(server, 'stopped');
    await db.query(`update server set paid_until = now() + interval '365 hours' where order_number = $1`, [
      server.order_number,
    ]);
    expect((await patch(server, { service_code: 'vps-2' })).body.charged_usd).toBe(3);
  });
});

describe('Fields', () => {
  it('change together, with one event', async () => {
    const server = await runningServer(30, { labels: { old: 'yes' } });
    const { status, body } = await patch(server, {
      hostname: 'DB.Example.org',
      labels: { env: 'prod' },
      auto_renew: false,
      delete_protection: true,
      reverse_dns: [{ ip: server.ipv4, ptr: 'DB.example.org' }],
    });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      status: 'running',
      hostname: 'db.example.org',
      labels: { env: 'prod' },
      auto_renew: false,
      delete_protection: true,
      reverse_dns: [{ ip: server.ipv4, ptr: 'db.example.org' }],
    });
    const [event] = await db.query('select type, data from event where subject = $1 order by id desc limit 1', [
      server.order_number,
    ]);
    expect(event).toEqual({
      type: 'server.updated',
      data: { status: 'RUNNING', changed: ['hostname', 'labels', 'autoRenew', 'deleteProtection', 'reverseDns'] },
    });
    const read = await server.account.rest('GET', `/v1/servers/${server.order_number}`);
    const { charged_usd, root_password, ...same } = body;
    expect(read.body).toEqual(same);
    expect((await patch(server, {})).body).toEqual(body);
    expect((await patch(server, { labels: {} })).body.labels).toEqual({});
  });

  it('do not change if the operation in the same request is refused', async () => {
    const server = await runningServer();
    expect((await patch(server, { hostname: 'new.example', service_code: 'vps-2' })).body.code).toBe(
      'server_not_stopped',
    );
    expect((await server.account.rest('GET', `/v1/servers/${server.order_number}`)).body.hostname).not.toBe(
      'new.example',
    );
    expect((await patch(server, { hostname: 'new.example', power_state: 'off' })).body).toMatchObject({
      status: 'stopping',
      hostname: 'new.example',
    });
  });

  it('keep the hostname while the worker makes a machine with it', async () => {
    const server = await runningServer();
    await db.query(`update server set status = 'PROVISIONING' where order_number = $1`, [server.order_number]);
    expect((await patch(server, { hostname: 'late.example' })).body.code).toBe('server_busy');
    await db.query(`update server set status = 'RUNNING' where order_number = $1`, [server.order_number]);
  });

  it('give names only to addresses of the server and of its prefix, in canonical form', async () => {
    const server = await runningServer();
    const inside = server.ipv6_prefix.replace('::/64', ':0:0::ABC');
    const { body } = await patch(server, {
      reverse_dns: [
        { ip: server.ipv6.toUpperCase(), ptr: 'a.example' },
        { ip: inside, ptr: 'b.example' },
        { ip: `::ffff:${server.ipv4}`, ptr: 'c.example' },
      ],
    });
    expect(body.reverse_dns).toEqual([
      { ip: server.ipv6, ptr: 'a.example' },
      { ip: server.ipv6_prefix.replace('::/64', '::abc'), ptr: 'b.example' },
      { ip: server.ipv4, ptr: 'c.example' },
    ]);
    const other = await runningServer();
    for (const reverse_dns of [
      [{ ip: other.ipv4, ptr: 'x.example' }],
      [{ ip: other.ipv6, ptr: 'x.example' }],
      [{ ip: '127.0.0.1', ptr: 'x.example' }],
      [
        { ip: server.ipv4, ptr: 'x.example' },
        { ip: server.ipv4, ptr: 'y.example' },
      ],
      [{ ip: `${server.ipv4}.`, ptr: 'x.example' }],
      [{ ip: 'fe80::1%eth0', ptr: 'x.example' }],
      [{ ip: server.ipv4, ptr: '-bad-' }],
      [{ ip: server.ipv4 }],
      'x',
    ])
      expect((await patch(server, { reverse_dns })).body.code, JSON.stringify(reverse_dns)).toBe('validation_failed');
  });

  it.each([
    [{ power_state: 'off', action: 'reboot' }, 'one_operation_per_request'],
    [{ action: 'rebuild', service_code: 'vps-2' }, 'one_operation_per_request'],
    [{ power_state: 'on', action: 'reset', service_code: 'vps-2' }, 'one_operation_per_request'],
    [{ os: 'debian-12' }, 'validation_failed'],
    [{ action: 'reboot', user_data: 'x' }, 'validation_failed'],
    [{ power_state: 'standby' }, 'validation_failed'],
    [{ action: ['reboot', 'reset'] }, 'validation_failed'],
    [{ labels: { 'Bad Key': 'x' } }, 'validation_failed'],
    [{ hostname: 'a..b' }, 'validation_failed'],
    [{ status: 'running' }, 'unknown_field'],
    [{ region: 'zrh' }, 'unknown_field'],
    [[], 'validation_failed'],
  ])('%j are refused as %s', async (body, code) => {
    const account = await newAccount();
    const answer = await account.rest('PATCH', '/v1/servers/SRV-0000000000', body);
    expect([answer.status, answer.body.code]).toEqual([422, code]);
  });
});

describe('Deletion protection', () => {
  it('refuses a deletion until the customer removes it', async () => {
    const server = await runningServer();
    await patch(server, { delete_protection: true });
    const path = `/v1/servers/${server.order_number}`;
    expect((await server.account.rest('DELETE', path)).body.code).toBe('delete_protected');
    await patch(server, { delete_protection: false });
    expect((await server.account.rest('DELETE', path)).body.status).toBe('deleting');
  });
});

describe('Another account', () => {
  it('finds no server to change, and a read-only key is refused', async () => {
    const [server, other] = [await runningServer(), await newAccount()];
    const path = `/v1/servers/${server.order_number}`;
    for (const [rest, at] of [
      [other.rest, path],
      [server.account.rest, '/v1/servers/SRV-0000000000'],
      [server.account.rest, '/v1/servers/x'],
    ] as const) {
      const { status, body } = await rest('PATCH', at, { power_state: 'off' });
      expect([status, body.code]).toEqual([404, 'not_found']);
    }
    const { body: key } = await server.account.rest('POST', '/v1/auth/api-keys', { name: 'r', scope: 'read billing' });
    const refused = await freehold.anonymous(
      'PATCH',
      path,
      { power_state: 'off' },
      {
        authorization: `Bearer ${key.plaintext}`,
      },
    );
    expect([refused.status, refused.body.code]).toEqual([403, 'insufficient_scope']);
  });
});
