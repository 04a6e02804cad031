import { describe, expect, it } from 'vitest';
import { idFloor } from '../../entities/ids.ts';
import { rangeOf } from '../../resolvers/accounts/usage.ts';
import { asOwner } from '../setup/database.ts';
import { eventually, startFreehold, type TestAccount } from '../setup/freehold.ts';

const { db, newAccount, publicUrl } = await startFreehold();
const USAGE = '/v1/account/usage';
const FULL_RANGE = `${USAGE}?from=${new Date().getUTCFullYear()}-01-01`;

/** An account that topped up, ordered a server, and deleted it after it ran. */
async function customer(): Promise<TestAccount & { server: string }> {
  const account = await newAccount();
  await account.topUp(100);
  const { body } = await account.rest('POST', '/v1/servers', { service_code: 'vps-1' });
  const path = `/v1/servers/${body.order_number}`;
  await account.rest('GET', `${path}?wait_for=running&timeout=25`);
  await eventually(async () => (await account.rest('GET', path)).body.status === 'running');
  await account.rest('DELETE', path);
  return { ...account, server: body.order_number };
}

/** Inserts a change of the balance at a time, because the ledger does not allow updates. */
let made = 0;
async function entry(accountId: string, at: Date, micros: number): Promise<void> {
  const id = `${idFloor('xfr', at.getTime())}${String(++made).padStart(16, '0')}`;
  await asOwner(
    db,
    `insert into transfer (id, account_id, kind, debit, credit, amount_micros, external_key, description, created_at)
      values ($1, $2, 'adjustment', 'revenue', 'available:' || $2, $3, $1, 'Adjustment', $4)`,
    [id, accountId, micros, at],
  );
}

describe('Usage', () => {
  it('lists the changes of the balance, newest first, and sums up to it', async () => {
    const { rest, balance, server } = await customer();
    const { status, body } = await rest('GET', FULL_RANGE);
    expect(status).toBe(200);
    expect(body.data.map(({ kind, amount_usd }: never) => [kind, amount_usd])).toEqual([
      ['refund', expect.any(Number)],
      ['order', -6],
      ['bonus', 2],
      ['topup', 100],
    ]);
    const [refund, order, , topup] = body.data;
    expect(refund).toMatchObject({ order_number: server, service_code: 'vps-1', hours: 729 });
    expect(order).toMatchObject({
      order_number: server,
      service_code: 'vps-1',
      description: 'Order of vps-1',
      hours: 730,
    });
    expect(new Date(order.to).getTime() - new Date(order.from).getTime()).toBeGreaterThan(729 * 3_600_000);
    expect(topup).toMatchObject({ hours: null, service_code: null, order_number: expect.stringMatching(/^TOP-/) });
    expect(topup.from).toBe(topup.to);
    expect(body.total_usd).toBeCloseTo(await balance(), 6);
    expect(body).toMatchObject({ topped_up_usd: 102, adjusted_usd: 0 });
    expect(body.spent_usd).toBeCloseTo(6 - refund.amount_usd, 6);
    expect(body).toMatchObject({ next_cursor: null, has_more: false });
  });

  it('covers this month by default, until the last millisecond of today', async () => {
    const { rest } = await newAccount();
    const { body } = await rest('GET', USAGE);
    const today = new Date().toISOString().slice(0, 10);
    expect(body).toEqual({
      from: `${today.slice(0, 8)}01T00:00:00.000Z`,
      to: `${today}T23:59:59.999Z`,
      total_usd: 0,
      spent_usd: 0,
      topped_up_usd: 0,
      adjusted_usd: 0,
      data: [],
      next_cursor: null,
      has_more: false,
    });
  });

  it('has the same items in pages as at once, and the total of the range on each page', async () => {
    const { rest } = await customer();
    const { body: whole } = await rest('GET', FULL_RANGE);
    const pages = [];
    for (let cursor = ''; pages.length < 10; ) {
      const { body } = await rest('GET', `${FULL_RANGE}&limit=1${cursor && `&cursor=${cursor}`}`);
      pages.push(body);
      if (!body.has_more) break;
      cursor = body.next_cursor;
    }
    expect(pages).toHaveLength(4);
    expect(pages.map(({ data }) => data[0])).toEqual(whole.data);
    expect(pages[2].data).toEqual([whole.data[2]]);
    expect(new Set(pages.map(({ total_usd }) => total_usd))).toEqual(new Set([whole.total_usd]));
  });

  it('keeps its place when a change happens between two pages', async () => {
    const { id, rest } = await newAccount();
    for (let day = 1; day <= 5; day++) await entry(id, new Date(Date.UTC(2024, 0, day)), day);
    const first = await rest('GET', `${USAGE}?from=2024-01-01&to=2024-12-31&limit=2`);
    await entry(id, new Date(Date.UTC(2024, 0, 9)), 9);
    const second = await rest('GET', `${USAGE}?from=2024-01-01&to=2024-12-31&limit=2&cursor=${first.body.next_cursor}`);
    const amounts = (body: { data: { amount_usd: number }[] }) => body.data.map(({ amount_usd }) => amount_usd * 1e6);
    expect([amounts(first.body), amounts(second.body)]).toEqual([
      [5, 4],
      [3, 2],
    ]);
    expect(second.body.total_usd).toBe(24 / 1e6);
  });

  it('includes both days of its range in UTC, and no other time', async () => {
    const { id, rest } = await newAccount();
    const times = [
      '2024-02-28T23:59:59.999Z',
      '2024-02-29T00:00:00.000Z',
      '2024-03-01T23:59:59.999Z',
      '2024-03-02T00:00:00Z',
    ];
    for (const [i, time] of times.entries()) await entry(id, new Date(time), 10 ** i);
    expect((await rest('GET', `${USAGE}?from=2024-02-29&to=2024-03-01`)).body.total_usd).toBe(110 / 1e6);
    expect((await rest('GET', `${USAGE}?from=2024-02-28&to=2024-02-28`)).body.total_usd).toBe(1 / 1e6);
    expect((await rest('GET', `${USAGE}?to=2024-03-02`)).body.total_usd).toBe(1100 / 1e6);
  });

  it('shows a failed order as an order and a refund', async () => {
    const { id, rest, fund } = await newAccount();
    await fund(30);
    const { body } = await rest('POST', '/v1/servers', { service_code: 'vps-1' });
    await rest('DELETE', `/v1/servers/${body.order_number}`);
    const { data, total_usd } = (await rest('GET', USAGE)).body;
    expect(data.slice(0, 2).map(({ kind }: { kind: string }) => kind)).toEqual(['refund', 'order']);
    const [row] = await db.query<{ micros: bigint }>(
      'select available_micros as micros from balance where account_id = $1',
      [id],
    );
    expect(total_usd).toBe(Number(row!.micros) / 1e6);
  });

  it('never shows another account, even with its cursor', async () => {
    const [theirs, mine] = [await customer(), await newAccount()];
    const { body } = await theirs.rest('GET', `${FULL_RANGE}&limit=1`);
    expect((await mine.rest('GET', FULL_RANGE)).body).toMatchObject({ data: [], total_usd: 0 });
    expect((await mine.rest('GET', `${FULL_RANGE}&limit=1&cursor=${body.next_cursor}`)).body.data).toEqual([]);
  });

  it.each([
    'from=yesterday',
    'from=2026-02-30',
    'from=2026-13-01',
    'from=20260101',
    'from=2026-1-1',
    'from=0000-01-01',
    'from=9999-01-01',
    'from=2026-01-01T00:00',
    'from=',
    'from=%00',
    'to=2026-00-01',
    'from=2024-03-02&to=2024-03-01',
    'from=2024-01-01&to=2025-01-01',
    'from=2015-01-01',
    'from=2024-01-01&from=2024-01-02',
    'limit=0',
    'limit=201',
    'since=2024-01-01',
  ])('refuses ?%s', async (query) => {
    const { rest } = await newAccount();
    const { status, body } = await rest('GET', `${USAGE}?${query}`);
    expect([status, body.code]).toEqual([400, 'invalid_query']);
  });

  it('accepts twelve months and not a day more, even from a leap day', () => {
    const day = (text: string) => new Date(`${text}T00:00:00Z`);
    const now = day('2026-11-21');
    expect(rangeOf({ from: day('2024-01-01'), to: day('2024-12-31') }, now).to.toISOString()).toBe(
      '2024-12-31T23:59:59.999Z',
    );
    expect(rangeOf({ from: day('2024-02-29'), to: day('2025-02-28') }, now).from).toEqual(day('2024-02-29'));
    expect(() => rangeOf({ from: day('2024-02-29'), to: day('2025-03-01') }, now)).toThrow(/12 months/);
    expect(rangeOf({ to: day('2024-02-29') }, now).from).toEqual(day('2024-02-01'));
    expect(() => rangeOf({ from: day('2026-11-22') }, now)).toThrow(/before/);
  });

  it('accepts cursors only with the same days', async () => {
    const { rest } = await customer();
    const { body } = await rest('GET', `${FULL_RANGE}&limit=1`);
    const { status, body: refused } = await rest('GET', `${USAGE}?limit=1&cursor=${body.next_cursor}`);
    expect([status, refused.code]).toEqual([400, 'invalid_cursor']);
  });

  it('is also readable with the tool get_usage', async () => {
    const { accessToken, rest } = await customer();
    const params = { name: 'get_usage', arguments: { from: FULL_RANGE.slice(-10), access_token: accessToken } };
    const response = await fetch(`${publicUrl}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
    });
    const { body } = await rest('GET', FULL_RANGE);
    const text = await response.text();
    expect(text).toContain(JSON.stringify(body.data[0].order_number));
    expect(text).toContain(`"total_usd":${body.total_usd}`);
  });
});
