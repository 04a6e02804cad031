import { createClient } from 'graphql-ws';
import { describe, expect, it } from 'vitest';
import WebSocket from 'ws';
import { newId } from '../../entities/ids.ts';
import { asOwner } from '../setup/database.ts';
import { eventually, startFreehold, type TestAccount } from '../setup/freehold.ts';
import { graphqlClient, restClient } from '../setup/spawn.ts';

const { newAccount, operator, publicUrl, graphqlUrl, db } = await startFreehold();
const make = (account: TestAccount, more: object = {}) =>
  account.rest('POST', '/v1/auth/api-keys', { name: 'limited', scope: 'full', ...more });
const clientOf = (plaintext: string) => restClient(publicUrl, plaintext);
const soon = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString();

describe('An API key with an ip_allowlist', () => {
  it('works only from its networks, at every endpoint, with a cached credential too', async () => {
    const account = await newAccount();
    const home = (await make(account, { ip_allowlist: ['127.0.0.0/8', '::1'] })).body;
    expect(home.ip_allowlist).toEqual(['127.0.0.0/8', '::1/128']);
    const away = (await make(account, { ip_allowlist: '203.0.113.7, 2001:db8::/32' })).body;
    expect(away.ip_allowlist).toEqual(['203.0.113.7/32', '2001:db8::/32']);
    for (let i = 0; i < 2; i++) {
      expect((await clientOf(home.plaintext)('GET', '/v1/account')).status).toBe(200);
      const refused = await clientOf(away.plaintext)('GET', '/v1/account');
      expect([refused.status, refused.body.code]).toEqual([403, 'ip_not_allowed']);
    }
    expect((await clientOf(away.plaintext)('GET', '/v1/catalog')).status).toBe(403);
    const { errors } = await graphqlClient(graphqlUrl, away.plaintext)('{ account { id } }');
    expect(errors[0].extensions.code).toBe('ip_not_allowed');
    expect((await graphqlClient(graphqlUrl, home.plaintext)('{ account { id } }')).data.account.id).toBe(account.id);
    const socket = createClient({
      url: graphqlUrl.replace('http', 'ws'),
      webSocketImpl: WebSocket,
      connectionParams: { authorization: `Bearer ${away.plaintext}` },
      retryAttempts: 0,
    });
    await expect(
      socket.iterate({ query: 'subscription { balanceChanged { balanceUsd } }' }).next(),
    ).rejects.toMatchObject({
      code: 4403,
    });
    const spoofed = await clientOf(away.plaintext)('GET', '/v1/account', undefined, {
      'x-forwarded-for': '203.0.113.7',
    });
    expect(spoofed.status).toBe(403);
  });

  it('protects MCP, and is an argument of a tool', async () => {
    const account = await newAccount();
    const { plaintext } = (await make(account, { ip_allowlist: ['203.0.113.7'] })).body;
    const call = { name: 'get_balance', arguments: { access_token: plaintext } };
    const reply = await fetch(`${publicUrl}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: call }),
    });
    expect(await reply.text()).toContain('ip_not_allowed');
  });

  it.each([
    [['nonsense']],
    ['203.0.113.0/33'],
    [['203.0.113.0/24', 7]],
    [Array.from({ length: 21 }, (_, i) => `203.0.113.${i}`)],
    [Array.from({ length: 21 }, (_, i) => `203.0.113.${i}`).join()],
    [{ cidr: '203.0.113.0/24' }],
    [7],
  ])('is not created with %j', async (ip_allowlist) => {
    const { status, body } = await make(await newAccount(), { ip_allowlist });
    expect([status, body.code]).toEqual([422, 'validation_failed']);
  });

  it('accepts up to twenty networks, and an empty list for no limit', async () => {
    const account = await newAccount();
    const twenty = Array.from({ length: 20 }, (_, i) => `203.0.113.${i}`);
    expect((await make(account, { ip_allowlist: twenty })).body.ip_allowlist).toHaveLength(20);
    for (const ip_allowlist of [[], null])
      expect((await make(account, { ip_allowlist })).body.ip_allowlist).toEqual([]);
  });
});

describe('An API key with expires_at', () => {
  it('stops working at that time, has an event, and no longer counts towards the limit', async () => {
    const account = await newAccount();
    for (let i = 0; i < 9; i++) await make(account);
    const { body } = await make(account, { expires_at: soon(5) });
    expect(body.status).toBe('active');
    const rest = clientOf(body.plaintext);
    expect((await rest('GET', '/v1/account')).status).toBe(200);
    expect((await make(account)).body.code).toBe('api_key_limit_reached');
    const over = await eventually(async () => {
      const answer = await rest('GET', '/v1/account');
      return answer.status === 401 && answer.body.code;
    });
    expect(over).toBe('expired_credential');
    const listed = await account.rest('GET', '/v1/auth/api-keys?status=expired');
    expect(listed.body.data.map((key: { key_id: string }) => key.key_id)).toEqual([body.key_id]);
    expect((await account.rest('DELETE', `/v1/auth/api-keys/${body.key_id}`)).body.status).toBe('expired');
    expect((await make(account)).status).toBe(200);
    await eventually(async () => {
      const events = await db.query(`select 1 from event where subject = $1 and type = 'api_key.expired'`, [
        body.key_id,
      ]);
      return events.length === 1;
    });
  });

  it('works until then if the operator retries its expiry, and can be revoked', async () => {
    const account = await newAccount();
    const { body } = await make(account, { expires_at: soon(3600) });
    const retry = `mutation { retryTask(subject: "${body.key_id}") { subject } }`;
    const unfinished = 'select from task where subject = $1 and (fence = 0 or leased_by is not null)';
    expect((await operator(retry)).errors).toBeUndefined();
    await eventually(async () => !(await db.query(unfinished, [body.key_id])).length);
    const rest = clientOf(body.plaintext);
    expect((await rest('GET', '/v1/account')).status).toBe(200);
    expect((await account.rest('DELETE', `/v1/auth/api-keys/${body.key_id}`)).body.status).toBe('revoked');
    expect((await rest('GET', '/v1/account')).body.code).toBe('revoked_credential');
  });

  it('reads nothing once its expiry is recorded, even before that time', async () => {
    const account = await newAccount();
    const { body } = await make(account, { expires_at: soon(3600) });
    await db.query(`update api_key set status = 'EXPIRED' where id = $1`, [body.key_id]);
    expect((await clientOf(body.plaintext)('GET', '/v1/account')).body.code).toBe('expired_credential');
  });

  it('does not expire after its revocation', async () => {
    const account = await newAccount();
    const { body } = await make(account, { expires_at: soon(3) });
    expect((await account.rest('DELETE', `/v1/auth/api-keys/${body.key_id}`)).body.status).toBe('revoked');
    await eventually(async () => !(await db.query('select 1 from task where subject = $1', [body.key_id])).length);
    const [key] = (await account.rest('GET', '/v1/auth/api-keys?status=revoked')).body.data;
    expect([key.key_id, key.status]).toEqual([body.key_id, 'revoked']);
  });

  it.each(['2020-01-01T00:00:00Z', soon(-1), 'tomorrow', '2030-02-30T00:00:00Z', 4_000_000_000, '2030-01-01'])(
    'is not created with %s',
    async (expires_at) => {
      const { status, body } = await make(await newAccount(), { expires_at });
      expect([status, body.code, body.errors[0].field]).toEqual([422, 'validation_failed', 'expires_at']);
    },
  );
});

describe('An API key with spend_limit_usd', () => {
  const order = (rest: TestAccount['rest'], more: object = {}) =>
    rest('POST', '/v1/servers', { service_code: 'vps-1', ...more });

  it('never exceeds its limit when twenty orders come at once, and does not limit other credentials', async () => {
    const account = await newAccount();
    await account.fund(200);
    const before = await account.balance();
    const { plaintext, spend_limit_usd } = (await make(account, { spend_limit_usd: 20 })).body;
    expect(spend_limit_usd).toBe(20);
    const rest = clientOf(plaintext);
    const orders = await Promise.all(Array.from({ length: 20 }, () => order(rest)));
    expect(orders.filter(({ status }) => status === 200)).toHaveLength(3);
    const refused = orders.filter(({ status }) => status === 403);
    expect(refused).toHaveLength(17);
    expect(refused[0]!.body).toMatchObject({ code: 'spend_limit_exceeded' });
    expect(refused[0]!.body.detail).toContain('18 of 20 USD');
    expect((await order(account.rest)).status).toBe(200);
    expect((await order(clientOf((await make(account)).body.plaintext))).status).toBe(200);
    expect(await account.balance()).toBe(before - 5 * 6);
  });

  it('starts again at zero in each month (UTC)', async () => {
    const account = await newAccount();
    await account.fund(50);
    const { plaintext, key_id } = (await make(account, { spend_limit_usd: 6 })).body;
    // The triggers count the transfer into its own month and day.
    await asOwner(
      db,
      `insert into transfer (id, account_id, kind, debit, credit, amount_micros, external_key, description, credential_id, created_at)
        values ($1, $2, 'hold', 'available:' || $2, 'held:' || $2, 6000000, $1, 'x', $3,
          date_trunc('month', now(), 'UTC') - interval '1 millisecond')`,
      [newId('xfr'), account.id, key_id],
    );
    expect((await order(clientOf(plaintext))).status).toBe(200);
    expect((await order(clientOf(plaintext))).status).toBe(403);
  });

  /** Stopped servers that the account ordered without the key. */
  async function stopped(account: TestAccount, count: number): Promise<string[]> {
    const paths: string[] = [];
    for (let i = 0; i < count; i++) {
      const { body } = await order(account.rest, { region: 'ams', auto_renew: false });
      const path = `/v1/servers/${body.order_number}`;
      await account.rest('GET', `${path}?wait_for=running`);
      await account.rest('PATCH', path, { power_state: 'off' });
      await account.rest('GET', `${path}?wait_for=stopped`);
      paths.push(path);
    }
    return paths;
  }
  const spentBy = async (key_id: string) =>
    (
      await db.query<{ micros: bigint }>(
        'select sum(amount_micros)::bigint as micros from transfer where credential_id = $1',
        [key_id],
      )
    )[0]!.micros;

  it('counts resizes too, when twenty orders and resizes come at once', async () => {
    const account = await newAccount();
    await account.fund(500);
    const paths = await stopped(account, 10);
    const { plaintext, key_id } = (await make(account, { spend_limit_usd: 20 })).body;
    const rest = clientOf(plaintext);
    const answers = await Promise.all([
      ...paths.map((path) => rest('PATCH', path, { service_code: 'vps-2' })),
      ...paths.map(() => order(rest)),
    ]);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(3); // six dollars each
    const refused = answers.filter(({ status }) => status !== 200);
    expect(new Set(refused.map(({ body }) => body.code))).toEqual(new Set(['spend_limit_exceeded']));
    expect(await spentBy(key_id)).toBe(18_000_000n);
    expect((await account.rest('PATCH', paths.at(-1)!, { labels: { a: 'b' } })).status).toBe(200);
  });

  it('gets back the amount of a failed resize', async () => {
    const account = await newAccount();
    await account.fund(100);
    const [first, second] = await stopped(account, 2);
    const { plaintext, key_id } = (await make(account, { spend_limit_usd: 7 })).body;
    const rest = clientOf(plaintext);
    expect((await rest('PATCH', first!, { service_code: 'vps-2' })).status).toBe(200);
    expect((await rest('PATCH', second!, { service_code: 'vps-2' })).body.code).toBe('spend_limit_exceeded');
    // The release that a failed resize writes for this hold.
    await db.query(
      `insert into transfer (id, account_id, kind, debit, credit, amount_micros, external_key, description)
        select 'xfr_' || id, account_id, 'release', credit, debit, amount_micros, 'release:' || substr(external_key, 6), ''
        from transfer where credential_id = $1`,
      [key_id],
    );
    expect((await rest('PATCH', second!, { service_code: 'vps-2' })).status).toBe(200);
  });

  it('does not count renewals, because no key causes them', async () => {
    const account = await newAccount();
    await account.fund(50);
    const { plaintext, key_id } = (await make(account, { spend_limit_usd: 6 })).body;
    const rest = clientOf(plaintext);
    const { body } = await order(rest);
    await rest('GET', `/v1/servers/${body.order_number}?wait_for=running`);
    await account.rest('PATCH', `/v1/servers/${body.order_number}`, { auto_renew: true });
    await db.query(`update server set paid_until = now() - interval '1 hour' where order_number = $1`, [
      body.order_number,
    ]);
    await db.query(`update task set run_at = now() where subject = 'cron:renewals' and leased_by is null`);
    const renewal = () =>
      db.query(`select credential_id from transfer where kind = 'renewal' and account_id = $1`, [account.id]);
    expect(await eventually(async () => (await renewal()).length > 0 && renewal())).toEqual([{ credentialId: null }]);
    expect(await spentBy(key_id)).toBe(6_000_000n);
  });

  it('spends nothing with a limit of zero, and can still read', async () => {
    const account = await newAccount();
    await account.fund(50);
    const rest = clientOf((await make(account, { spend_limit_usd: 0 })).body.plaintext);
    expect((await order(rest)).body.code).toBe('spend_limit_exceeded');
    expect((await rest('GET', '/v1/servers')).status).toBe(200);
  });

  it.each([-1, 1e10, '20', [20], '1e999'])('is not created with %j', async (spend_limit_usd) => {
    expect((await make(await newAccount(), { spend_limit_usd })).status).toBe(422);
  });
});
