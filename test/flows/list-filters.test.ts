/** Filters of lists: several values, ranges of time by either word, orders, and errors in the words of the caller. */
import { describe, expect, it } from 'vitest';
import { startFreehold } from '../setup/freehold.ts';
import { callTool } from '../setup/tool.ts';

const { newAccount, publicUrl, db } = await startFreehold({ SIMULATED_PAYMENT_SECONDS: '3600' });
const account = await newAccount();
await account.fund(100);
const get = async (path: string) => (await account.rest('GET', path)).body;
const numbers = async (path: string) =>
  ((await get(path)).data as { order_number: string }[]).map(({ order_number }) => order_number);

const servers: string[] = [];
for (const region of ['ams', 'zrh', 'kef'])
  servers.push(
    (await account.rest('POST', '/v1/servers', { service_code: 'vps-1', region, root_password: 'a long password' }))
      .body.order_number,
  );
const topups: string[] = [];
for (const amount_usd of [30, 31, 32])
  topups.push((await account.rest('POST', '/v1/billing/topups', { amount_usd, crypto: 'XMR' })).body.order_number);
await account.rest('POST', `/v1/billing/topups/${topups[1]}/cancel`);
/** Moves the creation of things by days, the first one furthest. */
for (const [table, list] of [
  ['server', servers],
  ['top_up', topups],
] as const)
  for (const [i, number] of list.entries())
    await db.query(`update ${table} set created_at = '2026-03-0${i + 1}T12:00:00Z' where order_number = $1`, [number]);
const [first, second, third] = servers;

describe('A filter of a list', () => {
  it('accepts one value or several', async () => {
    expect(await numbers('/v1/billing/topups?status=cancelled')).toEqual([topups[1]]);
    const several = await numbers('/v1/billing/topups?status=pending,confirming,confirmed,cancelled');
    expect(several).toEqual(topups.toReversed());
    expect(await numbers('/v1/billing/topups?status=cancelled&status=expired')).toEqual([topups[1]]);
    expect(await numbers('/v1/servers?region=ams,kef')).toEqual([third, first]);
    expect(await numbers('/v1/servers?region=zrh')).toEqual([second]);
    await account.rest('POST', '/v1/auth/api-keys', { name: 'one', scope: 'read' });
    expect((await get('/v1/auth/api-keys?status=active,revoked')).data).toHaveLength(1);
    expect((await get('/v1/auth/api-keys?status=expired,revoked')).data).toEqual([]);
    const actions = (await get('/v1/account/audit-log?action=server.created,topup.cancelled')).data;
    expect(new Set(actions.map(({ action }: { action: string }) => action))).toEqual(
      new Set(['server.created', 'topup.cancelled']),
    );
    const { content } = await callTool(publicUrl, account.accessToken, 'list_topups', { status: 'cancelled' });
    expect(content.data).toHaveLength(1);
  });

  it('says which values exist, and what was sent', async () => {
    const { status, body } = await account.rest('GET', '/v1/billing/topups?status=pending,paid');
    expect([status, body.code, body.errors[0].field]).toEqual([400, 'invalid_query', 'status']);
    expect(body.detail).toContain('expired, cancelled');
  });

  it('shows expired keys once beside active ones', async () => {
    const expires_at = new Date(Date.now() + 3_600_000).toISOString();
    const { body } = await account.rest('POST', '/v1/auth/api-keys', { name: 'two', scope: 'read', expires_at });
    await db.query(`update api_key set expires_at = now() - interval '1 second' where id = $1`, [body.key_id]);
    const both = (await get('/v1/auth/api-keys?status=active,expired')).data as { key_id: string; status: string }[];
    expect(both.filter(({ key_id }) => key_id === body.key_id)).toMatchObject([{ status: 'expired' }]);
  });
});

describe.each([
  ['/v1/servers', servers],
  ['/v1/billing/topups', topups],
])('The list %s', (path, [one, two, three]) => {
  it('is filtered by creation, with days and with times', async () => {
    expect(await numbers(`${path}?created_since=2026-03-02`)).toEqual([three, two]);
    expect(await numbers(`${path}?created_until=2026-03-02`)).toEqual([two, one]);
    expect(await numbers(`${path}?created_since=2026-03-02T12:00:00Z&created_until=2026-03-03T12:00:00Z`)).toEqual([
      two,
    ]);
    const { status, body } = await account.rest('GET', `${path}?created_since=2026-03-02&created_until=2026-03-01`);
    expect([status, body.errors[0].field]).toEqual([400, 'created_until']);
    const wrong = await account.rest('GET', `${path}?created_since=yesterday`);
    expect(wrong.body.detail).toMatch(/created_since "yesterday".*day/);
    expect((await account.rest('GET', `${path}?since=2026-03-02`)).body.detail).toContain('created_since');
  });

  it('is sorted by creation, in pages of either order', async () => {
    expect(await numbers(`${path}?sort=-created_at`)).toEqual([three, two, one]);
    expect(await numbers(`${path}?sort=created_at`)).toEqual([one, two, three]);
    const page = await get(`${path}?sort=created_at&limit=2`);
    expect(page).toMatchObject({ data: [{ order_number: one }, { order_number: two }], has_more: true });
    expect(await numbers(`${path}?sort=created_at&limit=2&cursor=${page.next_cursor}`)).toEqual([three]);
    const other = await account.rest('GET', `${path}?cursor=${page.next_cursor}`);
    expect([other.status, other.body.code]).toEqual([400, 'invalid_cursor']);
    const wrong = await account.rest('GET', `${path}?sort=hostname`);
    expect(wrong.body.detail).toContain('-created_at, created_at');
  });
});

describe('A range of time', () => {
  const today = new Date().toISOString().slice(0, 10);

  it('has its ends under either word, as days or as times', async () => {
    const usage = await get(`/v1/account/usage?from=${today}&to=${today}`);
    expect(await get(`/v1/account/usage?since=${today}&until=${today}`)).toEqual(usage);
    expect(await get(`/v1/account/usage?from=${today}T00:00:00Z&to=${today}T23:59:59Z`)).toEqual(usage);
    const log = await get(`/v1/account/audit-log?limit=5&since=${today}T00:00:00Z`);
    expect(log.data).toHaveLength(5);
    expect((await get(`/v1/account/audit-log?limit=5&from=${today}`)).data).toEqual(log.data);
    expect((await get(`/v1/account/audit-log?limit=5&from=${today}&to=${today}`)).data).toEqual(log.data);
    expect((await get(`/v1/account/audit-log?to=2026-01-01`)).data).toEqual([]);
    const metrics = await account.rest('GET', `/v1/servers/${first}/metrics?since=${today}&until=${today}`);
    expect([metrics.status, metrics.body.from]).toEqual([200, `${today}T00:00:00.000Z`]);
    const { content } = await callTool(publicUrl, account.accessToken, 'get_usage', { since: today, until: today });
    expect(content.from).toBe(usage.from);
  });

  it('is refused in the words of the caller', async () => {
    const { body } = await account.rest('GET', `/v1/account/usage?since=${today}&until=2026-01-01`);
    expect(body).toMatchObject({ detail: expect.stringMatching(/^until must/), errors: [{ field: 'until' }] });
    const wrong = await account.rest('GET', '/v1/account/usage?since=yesterday');
    expect(wrong.body).toMatchObject({
      detail: expect.stringMatching(/^since "yesterday"/),
      errors: [{ field: 'since' }],
    });
    const audit = await account.rest('GET', `/v1/account/audit-log?from=${today}&to=2026-01-01`);
    expect(audit.body).toMatchObject({ detail: expect.stringMatching(/^to must/), errors: [{ field: 'to' }] });
    const both = await account.rest('GET', `/v1/account/usage?since=${today}&from=${today}`);
    expect([both.status, both.body.detail]).toEqual([400, 'since means from. Send one of them.']);
    const tool = await callTool(publicUrl, account.accessToken, 'get_usage', { since: 'yesterday' });
    expect(tool.content.errors[0].field).toBe('since');
  });

  it('is refused in the words of the caller in bodies, too', async () => {
    const { body } = await account.rest('POST', '/v1/servers', { plan: 'vps-1', image: 'ubuntu', dry_run: true });
    expect(body).toMatchObject({ code: 'unknown_os', errors: [{ field: 'image' }] });
    expect(body.detail).toContain('There is no image "ubuntu".');
    const wrong = await account.rest('POST', '/v1/servers', { plan: 7 });
    expect(wrong.body.errors[0].field).toBe('plan');
    const keyed = await account.rest('POST', '/v1/servers', { plan: 7 }, { 'idempotency-key': 'words' });
    expect(keyed.body.errors[0].field).toBe('plan');
  });
});
