import { describe, expect, it } from 'vitest';
import { find } from '../../entities/database/table.ts';
import { Server } from '../../entities/servers/server.ts';
import { move } from '../../provisioning/servers/move.ts';
import { eventually, startFreehold, type TestAccount } from '../setup/freehold.ts';

const freehold = await startFreehold({ LIMIT_SERVERS: '25' });
const { db, newAccount, operator } = freehold;
/** Without a worker, so that the test itself is one. */
const apart = await startFreehold({ ROLES: 'api' });

const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILZo0JzYJEHChHBt6zG/B6cGUZpbFXeUqaufc1ki+RX/ ada@laptop';
const order = ({ rest }: TestAccount, more: object = {}) =>
  rest('POST', '/v1/servers', { service_code: 'vps-1', ...more });
const rows = async (sql: string, ...parameters: unknown[]) =>
  (await db.query<{ n: number }>(`select count(*)::int as n from ${sql}`, parameters))[0]!.n;
const funded = async (usd: number) => {
  const account = await newAccount();
  await account.fund(usd);
  return account;
};

describe('An order', () => {
  it('is charged at once, and gives a running server with an address', async () => {
    const account = await funded(50);
    const { status, body } = await order(account, {
      region: 'zrh',
      hostname: 'Web.Example.org',
      labels: { env: 'prod' },
    });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      kind: 'vps',
      status: 'pending',
      hostname: 'web.example.org',
      region: 'zrh',
      os: 'debian-13',
      charged_usd: 6,
      paid_by: 'balance',
    });
    expect(body.order_number).toMatch(/^SRV-[0-9A-HJKMNP-TV-Z]{10}$/);
    expect(body.root_password).toMatch(/^[0-9A-Za-z]{24}$/);
    expect(await account.balance()).toBe(44);
    const { body: running } = await account.rest('GET', `/v1/servers/${body.order_number}?wait_for=running`);
    expect(running).toMatchObject({
      status: 'running',
      labels: { env: 'prod' },
      failure: null,
      poll_after_seconds: null,
    });
    expect(running.ipv4).toMatch(/^(192\.0\.2|198\.51\.100|203\.0\.113)\.\d+$/);
    expect(running.ipv6).toMatch(/^2001:db8:/);
    expect(running).not.toHaveProperty('root_password');
    expect(await rows('server where order_number = $1 and root_password is null', body.order_number)).toBe(1);
  });

  it('takes the keys of the account, and then generates no password', async () => {
    const account = await funded(50);
    const { body: key } = await account.rest('POST', '/v1/ssh-keys', { public_key: KEY });
    const { body } = await order(account);
    expect(body).toMatchObject({ ssh_key_ids: [key.id], root_password: null });
    expect((await order(account, { ssh_key_ids: [], root_password: 'a root password' })).body).toMatchObject({
      ssh_key_ids: [],
      root_password: 'a root password',
    });
  });

  it('without funds is refused with 402, and writes nothing', async () => {
    const account = await newAccount();
    const traces = () =>
      Promise.all(
        // The service writes the audit entry of the request some time later.
        [
          'server where',
          'transfer where',
          'task where',
          'event where',
          `audit_entry where action <> 'api.request' and`,
        ].map((table) => rows(`${table} account_id = $1`, account.id)),
      );
    const before = await traces();
    const { status, body } = await order(account);
    expect(status).toBe(402);
    expect(body).toMatchObject({ code: 'insufficient_balance', required_usd: 6, balance_usd: 0, retryable: true });
    expect(await traces()).toEqual(before);
  });

  it.each([
    [{ service_code: 'vps-99' }, 'unknown_service_code'],
    [{ service_code: 'debian-13' }, 'unknown_service_code'],
    [{ region: 'mars' }, 'unknown_region'],
    [{ os: 'plan9' }, 'unknown_os'],
    [{ ssh_key_ids: ['sshkey_01h0000000000000000000000a'] }, 'unknown_ssh_key'],
    [{ service_code: 'ded-3', region: 'buh' }, 'out_of_stock'],
    [{ max_price_usd: 5.99 }, 'price_exceeds_max'],
    [{ hostname: '-bad-' }, 'validation_failed'],
    [{ hostname: 'a'.repeat(64) }, 'validation_failed'],
    [{ labels: { 'Bad Key': 'x' } }, 'validation_failed'],
    [{ root_password: 'short' }, 'validation_failed'],
    [{ colour: 'red' }, 'unknown_field'],
  ])('%j is refused as %s', async (more, code) => {
    const account = await funded(30);
    const { status, body } = await order(account, more);
    expect([status, body.code]).toEqual([422, code]);
    expect(await account.balance()).toBe(30);
  });

  it('names the regions with stock when its own has none', async () => {
    const { body } = await order(await funded(30), { service_code: 'ded-3', region: 'kef' });
    expect(body.available_regions).toEqual(['ams', 'zrh']);
  });

  it('gives exactly as many servers as the funds pay for, when 64 orders come at once', async () => {
    const account = await funded(66);
    const answers = await Promise.all(Array.from({ length: 64 }, () => order(account)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(11);
    expect(answers.filter(({ body }) => body.code === 'insufficient_balance')).toHaveLength(53);
    expect(await account.balance()).toBe(0);
    expect(await rows('server where account_id = $1', account.id)).toBe(11);
    expect(await rows(`transfer where account_id = $1 and kind = 'hold'`, account.id)).toBe(11);
  });

  it('is refused beyond 25 servers, also when 40 orders come at once', async () => {
    const account = await funded(300);
    const answers = await Promise.all(Array.from({ length: 40 }, () => order(account)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(25);
    expect(answers.filter(({ body }) => body.code === 'server_limit_reached')).toHaveLength(15);
  });
});

describe('Reading servers', () => {
  it('lists them newest first, in pages, with filters', async () => {
    const account = await funded(100);
    const made: string[] = [];
    for (let i = 0; i < 5; i++)
      made.unshift((await order(account, { hostname: `h${i}`, region: i % 2 ? 'kef' : 'buh' })).body.order_number);
    const first = await account.rest('GET', '/v1/servers?limit=2');
    expect(first.body.data.map((server: { order_number: string }) => server.order_number)).toEqual(made.slice(0, 2));
    expect(first.body.has_more).toBe(true);
    const second = await account.rest('GET', `/v1/servers?limit=2&cursor=${first.body.next_cursor}`);
    const third = await account.rest('GET', `/v1/servers?limit=2&cursor=${second.body.next_cursor}`);
    expect([...second.body.data, ...third.body.data].map((server) => server.order_number)).toEqual(made.slice(2));
    expect(third.body).toMatchObject({ has_more: false, next_cursor: null });
    expect((await account.rest('GET', '/v1/servers?region=kef')).body.data).toHaveLength(2);
    expect((await account.rest('GET', '/v1/servers?hostname=h3')).body.data[0].hostname).toBe('h3');
    await eventually(async () => (await account.rest('GET', '/v1/servers?status=running')).body.data.length === 5);
    expect((await account.rest('GET', '/v1/servers?status=failed')).body.data).toEqual([]);
  });

  it.each(['limit=0', 'limit=201', 'limit=abc', 'limit=1e1', 'status=melted', 'nonsense=1', 'cursor='])(
    'refuses the query %s',
    async (query) => {
      const { status, body } = await (await newAccount()).rest('GET', `/v1/servers?${query}`);
      expect([status, body.code]).toEqual([400, 'invalid_query']);
    },
  );

  it('refuses a malformed cursor, and one of another list', async () => {
    const account = await funded(30);
    for (let i = 0; i < 2; i++) await order(account);
    const { next_cursor } = (await account.rest('GET', '/v1/servers?limit=1')).body;
    for (const query of ['cursor=garbage', `cursor=${next_cursor}&region=ams`, `cursor=${next_cursor}x`]) {
      const { status, body } = await account.rest('GET', `/v1/servers?limit=1&${query}`);
      expect([status, body.code], query).toEqual([400, 'invalid_cursor']);
    }
  });

  it('answers 404 with one body for unknown and malformed numbers, and for servers of another account', async () => {
    const [mine, theirs] = [await newAccount(), await funded(30)];
    const { order_number } = (await order(theirs)).body;
    const paths = [
      order_number,
      'SRV-0000000000',
      'TOP-0000000000',
      'x',
      '12345678901234567890',
      '__proto__',
      '%00',
      '..%2f',
      '%F0%9F%8F%A0',
      'a'.repeat(300),
      "' or 1=1 --",
    ];
    const bodies = [];
    for (const path of paths) {
      const { status, body } = await mine.rest('GET', `/v1/servers/${path}`);
      expect([path, status]).toEqual([path, 404]);
      // The detail repeats a number that is short enough to be one.
      bodies.push({ ...body, request_id: '', detail: '' });
    }
    for (const body of bodies) expect(body).toEqual(bodies[0]);
    expect((await mine.rest('DELETE', `/v1/servers/${order_number}`)).status).toBe(404);
  });

  it('waits for a status, and answers early with another stable one', async () => {
    const account = await funded(30);
    const { order_number } = (await order(account)).body;
    const began = Date.now();
    const { body } = await account.rest('GET', `/v1/servers/${order_number}?wait_for=stopped&timeout=20`);
    expect(body.status).toBe('running');
    expect(Date.now() - began).toBeLessThan(15_000);
    expect((await account.rest('GET', `/v1/servers/${order_number}?wait_for=running&timeout=26`)).status).toBe(400);
  });
});

describe('Deleting a server', () => {
  it('refunds the unused whole hours, removes the machine, and frees its addresses', async () => {
    const account = await funded(30);
    const { order_number } = (await order(account)).body;
    await account.rest('GET', `/v1/servers/${order_number}?wait_for=running`);
    const { status, body } = await account.rest('DELETE', `/v1/servers/${order_number}`);
    expect(status).toBe(200);
    expect(body).toMatchObject({ order_number, status: 'deleting' });
    expect(body.refunded_usd).toBeCloseTo((6 / 730) * 729, 2);
    await eventually(async () => (await account.rest('GET', `/v1/servers/${order_number}`)).status === 404);
    expect((await account.rest('GET', '/v1/servers')).body.data).toEqual([]);
    expect(await account.balance()).toBeCloseTo(24 + body.refunded_usd, 5);
    expect(await rows('address where held_by = $1', order_number)).toBe(0);
  });

  it('leaves no SSH keys of its machine', async () => {
    const account = await funded(30);
    expect((await account.rest('POST', '/v1/ssh-keys', { name: 'one', public_key: KEY })).status).toBe(200);
    const { order_number: orderNumber } = (await order(account)).body;
    const kept = () => rows(`server where order_number = $1 and ssh_public_keys <> '{}'`, orderNumber);
    expect(await kept()).toBe(1);
    await account.rest('DELETE', `/v1/servers/${orderNumber}`);
    await eventually(async () => (await kept()) === 0);
  });

  it('answers a caller who waits for the end with the deleted server', async () => {
    const account = await apart.newAccount();
    await account.fund(30);
    const { order_number: orderNumber } = (await order(account)).body;
    await account.rest('DELETE', `/v1/servers/${orderNumber}`);
    const waiting = account.rest('GET', `/v1/servers/${orderNumber}?wait_for=deleted`);
    await new Promise((resume) => setTimeout(resume, 300));
    await apart.db.transaction(async (tx) => {
      const server = await find(tx, Server, { orderNumber });
      await move(tx, server!, 'DELETED', {});
    });
    expect((await waiting).body).toMatchObject({ order_number: orderNumber, status: 'deleted' });
    const { body } = await account.rest('GET', `/v1/servers/${orderNumber}?wait_for=deleted`);
    expect(body.code).toBe('not_found');
  });

  it('refunds everything before it ran, and it never runs', async () => {
    const account = await funded(30);
    const { order_number } = (await order(account)).body;
    const { body } = await account.rest('DELETE', `/v1/servers/${order_number}`);
    expect(body.refunded_usd).toBe(6);
    await eventually(async () => (await account.rest('GET', `/v1/servers/${order_number}`)).status === 404);
    expect(await account.balance()).toBe(30);
    expect(await rows(`event where subject = $1 and type = 'server.running'`, order_number)).toBe(0);
  });

  it('refunds once when several requests come at once', async () => {
    const account = await funded(30);
    const { order_number } = (await order(account)).body;
    await account.rest('GET', `/v1/servers/${order_number}?wait_for=running`);
    const answers = await Promise.all([1, 2, 3, 4].map(() => account.rest('DELETE', `/v1/servers/${order_number}`)));
    expect(answers.filter(({ body }) => body.refunded_usd > 0)).toHaveLength(1);
    expect(await rows(`transfer where order_number = $1 and kind = 'refund'`, order_number)).toBe(1);
  });
});

describe('Every change', () => {
  it('has its event and its audit entry, and the books balance', async () => {
    const account = await funded(30);
    const { order_number } = (await order(account)).body;
    await account.rest('GET', `/v1/servers/${order_number}?wait_for=running`);
    await account.rest('DELETE', `/v1/servers/${order_number}`);
    const types = (table: string, column: string, subject: string) =>
      eventually(async () => {
        const found = await db.query<{ type: string }>(
          `select ${column} as type from ${table} where ${subject} = $1 order by id`,
          [order_number],
        );
        return found.at(-1)?.type === 'server.deleted' && found.map(({ type }) => type);
      });
    const expected = ['server.created', 'server.provisioning', 'server.running', 'server.updated', 'server.deleted'];
    expect(await types('event', 'type', 'subject')).toEqual(expected);
    expect(await types('audit_entry', 'action', 'resource_id')).toEqual(expected);
    const { data } = await operator('{ books { balanced firstMismatch totals { name totalUsd } } }');
    expect(data.books).toMatchObject({ balanced: true, firstMismatch: null });
    expect(
      data.books.totals.reduce(
        (sum: number, { totalUsd }: { totalUsd: number }) => sum + Math.round(totalUsd * 1e6),
        0,
      ),
    ).toBe(0);
  });
});
