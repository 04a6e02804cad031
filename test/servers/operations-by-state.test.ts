/** Every operation in every status, generated. No worker knows the task of the server, so a status stays as the test sets it. */
import { describe, expect, it } from 'vitest';
import { SERVER_STATUSES, type ServerStatus } from '../../entities/servers/server.ts';
import { startFreehold } from '../setup/freehold.ts';

const { db, newAccount } = await startFreehold();
const account = await newAccount();
await account.fund(500);
const { body: vps } = await account.rest('POST', '/v1/servers', { service_code: 'vps-1', region: 'ams' });
await account.rest('GET', `/v1/servers/${vps.order_number}?wait_for=running`);
const { body: dedicated } = await account.rest('POST', '/v1/servers', { service_code: 'ded-1', region: 'ams' });
await account.rest('GET', `/v1/servers/${dedicated.order_number}?wait_for=running`);

const OPERATIONS = {
  'power on': { power_state: 'on' },
  'power off': { power_state: 'off' },
  reboot: { action: 'reboot' },
  reset: { action: 'reset' },
  rebuild: { action: 'rebuild', os: 'alma-9' },
  resize: { service_code: 'vps-2' },
} as const;
type Name = keyof typeof OPERATIONS;

/** The outcomes of the contract, or else the code of a status in which waiting cannot help. */
const ALLOWED: Partial<Record<ServerStatus, Partial<Record<Name, string>>>> = {
  RUNNING: {
    'power on': 'running',
    'power off': 'stopping',
    reboot: 'rebooting',
    reset: 'rebooting',
    rebuild: 'rebuilding',
    resize: 'server_not_stopped',
  },
  STOPPED: {
    'power on': 'starting',
    'power off': 'stopped',
    reboot: 'validation_failed',
    reset: 'validation_failed',
    rebuild: 'rebuilding',
    resize: 'resizing',
  },
};
const elsewhere = (status: ServerStatus) =>
  ({ SUSPENDED: 'server_suspended', FAILED: 'validation_failed', DELETED: 'not_found' })[status as string] ??
  'server_busy';
const CASES = SERVER_STATUSES.flatMap((status) =>
  (Object.keys(OPERATIONS) as Name[]).map(
    (operation) => [operation, status, ALLOWED[status]?.[operation] ?? elsewhere(status)] as const,
  ),
);

/** Sets the status of a server, with its task in a lane without workers. */
async function put(orderNumber: string, status: ServerStatus) {
  await db.query(
    `update server set status = $2, change = null, service_code = case kind when 'VPS' then 'vps-1' else 'ded-1' end,
      failure_code = null, delete_protection = false where order_number = $1`,
    [orderNumber, status],
  );
  await db.query('delete from task where subject = $1', [orderNumber]);
  // A task of an unknown process rests, so the server stays in its new status.
  await db.query(
    `insert into task (id, lane, process, subject, account_id, step) values ($1, 'unknown', 'unknown', $1, $2, 'rest')`,
    [orderNumber, account.id],
  );
}
const statusOf = async (orderNumber: string) =>
  (await db.query<{ status: ServerStatus }>('select status from server where order_number = $1', [orderNumber]))[0]!
    .status;
const eventsOf = async () => (await db.query<{ n: number }>('select count(*)::int as n from event'))[0]!.n;
const path = `/v1/servers/${vps.order_number}`;

describe('An operation', () => {
  it.each(CASES)('%s of a server in status %s: %s', async (operation, status, outcome) => {
    await put(vps.order_number, status);
    const [before, events] = [await account.balance(), await eventsOf()];
    const { status: code, body } = await account.rest('PATCH', path, OPERATIONS[operation]);
    const allowed = SERVER_STATUSES.includes(outcome.toUpperCase() as ServerStatus);
    if (allowed) {
      expect([code, body.status]).toEqual([200, outcome]);
      expect(await statusOf(vps.order_number)).toBe(outcome.toUpperCase());
      expect(body.poll_after_seconds).toBe(outcome === status.toLowerCase() ? null : 2);
      expect((await eventsOf()) - events).toBe(outcome === status.toLowerCase() ? 0 : 1);
    } else {
      expect([code, body.code]).toEqual([outcome === 'not_found' ? 404 : 422, outcome]);
      expect(body.retryable).toBe(outcome === 'server_busy');
      expect(await statusOf(vps.order_number)).toBe(status);
      expect(await eventsOf()).toBe(events);
    }
    expect(await account.balance()).toBe(outcome === 'resizing' ? before - body.charged_usd : before);
  });

  it.each(SERVER_STATUSES)('does not block a change of fields in status %s', async (status) => {
    await put(vps.order_number, status);
    const fields = { labels: { at: status }, auto_renew: false, delete_protection: true };
    const { status: code, body } = await account.rest('PATCH', path, fields);
    if (status === 'DELETED') return expect(code).toBe(404);
    expect(body).toMatchObject({ status: status.toLowerCase(), ...fields });
  });

  it.each(SERVER_STATUSES)('DELETE succeeds in status %s', async (status) => {
    await put(vps.order_number, status);
    const { status: code, body } = await account.rest('DELETE', path);
    if (status === 'DELETED') return expect(code).toBe(404);
    expect([code, body.status]).toEqual([200, 'deleting']);
  });

  it.each(SERVER_STATUSES.filter((status) => !['DELETED', 'DELETING'].includes(status)))(
    'DELETE of a protected server is refused in status %s',
    async (status) => {
      await put(vps.order_number, status);
      await account.rest('PATCH', path, { delete_protection: true });
      const { status: code, body } = await account.rest('DELETE', path);
      expect([code, body.code]).toEqual([422, 'delete_protected']);
      expect(await statusOf(vps.order_number)).toBe(status);
    },
  );
});

describe('Operations at the same time', () => {
  it('have one winner, and the other requests find the server busy', async () => {
    for (const asked of [
      [{ power_state: 'off' }, { action: 'reboot' }],
      [{ action: 'rebuild' }, { action: 'rebuild' }, { action: 'reset' }],
    ]) {
      await put(vps.order_number, 'RUNNING');
      const answers = await Promise.all([...asked, ...asked].map((body) => account.rest('PATCH', path, body)));
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
      expect(answers.filter(({ body }) => body.code === 'server_busy')).toHaveLength(answers.length - 1);
    }
  });

  it('charge one of many resizes, and claim one place', async () => {
    await put(vps.order_number, 'STOPPED');
    const claimed = async () =>
      (
        await db.query<{ n: number }>(
          `select count(order_number)::int as n from place where service_code = 'vps-2' and region_code = 'ams'`,
        )
      )[0]!.n;
    const [balance, places] = [await account.balance(), await claimed()];
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => account.rest('PATCH', path, { service_code: 'vps-2' })),
    );
    const [won] = answers.filter(({ status }) => status === 200);
    expect(answers.filter(({ body }) => body.code === 'server_busy')).toHaveLength(7);
    expect(await account.balance()).toBe(balance - won!.body.charged_usd);
    expect(await claimed()).toBe(places + 1);
  });
});

describe('A resize', () => {
  it.each([
    ['vps-1', 'resize_not_possible'],
    ['ded-1', 'resize_not_possible'],
    ['vps-99', 'unknown_service_code'],
    ['debian-13', 'unknown_service_code'],
  ])('to %s is refused as %s', async (service_code, code) => {
    await put(vps.order_number, 'STOPPED');
    const { status, body } = await account.rest('PATCH', path, { service_code });
    expect([status, body.code]).toEqual([422, code]);
  });

  it('to a smaller tier is refused, since its disk would lose data', async () => {
    await put(vps.order_number, 'STOPPED');
    await db.query(`update server set service_code = 'vps-3' where order_number = $1`, [vps.order_number]);
    expect((await account.rest('PATCH', path, { service_code: 'vps-2' })).body.code).toBe('resize_not_possible');
  });

  it('to a tier of another virtualization is refused, and charges nothing', async () => {
    await put(vps.order_number, 'STOPPED');
    const set = (kind: string) =>
      db.query(`update catalog_item set details = details || $1 where code = 'vps-2'`, [
        JSON.stringify({ virtualization: kind }),
      ]);
    const [tier] = await db.query<{ kind: string }>(
      `select details->>'virtualization' as kind from catalog_item where code = 'vps-2'`,
    );
    const balance = await account.balance();
    await set('other');
    const { body } = await account.rest('PATCH', path, { service_code: 'vps-2' });
    await set(tier!.kind);
    expect(body.code).toBe('resize_not_possible');
    expect(body.detail).toContain('virtualization');
    expect(await account.balance()).toBe(balance);
  });

  it('of a dedicated server is refused', async () => {
    await put(dedicated.order_number, 'STOPPED');
    const { body } = await account.rest('PATCH', `/v1/servers/${dedicated.order_number}`, { service_code: 'ded-2' });
    expect(body.code).toBe('resize_not_possible');
  });

  it('without a place is refused, and holds no money', async () => {
    await put(vps.order_number, 'STOPPED');
    await db.query(`update place set order_number = 'another' where service_code = 'vps-4' and region_code = 'ams'`);
    const before = await account.balance();
    expect((await account.rest('PATCH', path, { service_code: 'vps-4' })).body.code).toBe('out_of_stock');
    expect(await account.balance()).toBe(before);
  });

  it('without the funds is refused with 402, and claims no place', async () => {
    const poor = await newAccount();
    await poor.fund(30);
    const { body: server } = await poor.rest('POST', '/v1/servers', { service_code: 'vps-1', region: 'ams' });
    await poor.rest('GET', `/v1/servers/${server.order_number}?wait_for=running`);
    await put(server.order_number, 'STOPPED');
    const { status, body } = await poor.rest('PATCH', `/v1/servers/${server.order_number}`, { service_code: 'vps-5' });
    expect([status, body.code]).toEqual([402, 'insufficient_balance']);
    expect(body).toMatchObject({ required_usd: 90, balance_usd: 24 });
    expect(await poor.balance()).toBe(24);
  });
});
