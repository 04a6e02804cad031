import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { eventually, startFreehold, type TestAccount } from '../setup/freehold.ts';

const { anonymous, db, newAccount, publicUrl } = await startFreehold();
const LOG = '/v1/account/audit-log';
const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILZo0JzYJEHChHBt6zG/B6cGUZpbFXeUqaufc1ki+RX/ secret-comment';

// biome-ignore lint/suspicious/noExplicitAny: each test checks the type of the members that it reads
type Entry = any;
/** The service writes requests shortly after their answers. */
const requests = (account: TestAccount, count: number): Promise<Entry[]> =>
  eventually(async () => {
    const { data } = (await account.rest('GET', `${LOG}?action=api.request`)).body;
    return data.length >= count && data;
  });

async function callTool(name: string, args: object, headers: Record<string, string> = {}): Promise<void> {
  await fetch(`${publicUrl}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }),
  });
}

describe('The audit log', () => {
  it('names the actor, the action, the resource and the request', async () => {
    const account = await newAccount();
    const created = await account.rest('POST', '/v1/auth/api-keys', { name: 'robot', scope: 'full' });
    const { body } = await account.rest('GET', `${LOG}?action=api_key.created`);
    expect(body).toMatchObject({ next_cursor: null, has_more: false });
    expect(body.data).toEqual([
      {
        id: expect.stringMatching(/^aud_/),
        created_at: expect.stringMatching(/Z$/),
        action: 'api_key.created',
        actor: { type: 'access_token', id: expect.stringMatching(/^tok_/), name: 'register' },
        method: null,
        path: null,
        status: null,
        resource: { type: 'api_key', id: created.body.key_id },
        request_id: created.headers.get('x-request-id'),
      },
    ]);
    const [request] = await requests(account, 1);
    expect(request).toMatchObject({
      action: 'api.request',
      actor: body.data[0].actor,
      method: 'POST',
      path: '/v1/auth/api-keys',
      status: 200,
      resource: null,
      request_id: body.data[0].request_id,
    });
  });

  it('has each writing request with the template of its path, even a failed one', async () => {
    const account = await newAccount();
    const { body: key } = await account.rest('POST', '/v1/ssh-keys', { public_key: KEY });
    await account.rest('GET', `/v1/ssh-keys/${key.id}`);
    await account.rest('GET', `${LOG}?limit=7`);
    await account.rest('DELETE', `/v1/ssh-keys/${key.id}`);
    await account.rest('DELETE', `/v1/ssh-keys/${key.id}`);
    await account.rest('POST', '/v1/servers', { service_code: 'vps-1' });
    await account.rest('POST', '/v1/servers', '{');
    await account.rest('POST', '/v1/servers', { nonsense: 1 });
    const entries = await requests(account, 6);
    expect(entries.map(({ method, path, status }) => [method, path, status]).reverse()).toEqual([
      ['POST', '/v1/ssh-keys', 200],
      ['DELETE', '/v1/ssh-keys/{id}', 200],
      ['DELETE', '/v1/ssh-keys/{id}', 404],
      ['POST', '/v1/servers', 402],
      ['POST', '/v1/servers', 400],
      ['POST', '/v1/servers', 422],
    ]);
  });

  it('has refused requests of known credentials, and none of unknown callers', async () => {
    const account = await newAccount();
    const { body } = await account.rest('POST', '/v1/auth/api-keys', { name: 'reader', scope: 'read' });
    const authorization = `Bearer ${body.plaintext}`;
    await anonymous('POST', '/v1/servers', {}, { authorization });
    await anonymous('POST', '/v1/servers', {}, { authorization: `${authorization.slice(0, -1)}-` });
    await anonymous('POST', '/v1/servers', {});
    const entries = await requests(account, 2);
    expect(entries).toHaveLength(2);
    expect(entries[0]).toMatchObject({
      actor: { type: 'api_key', id: body.key_id, name: 'reader' },
      path: '/v1/servers',
      status: 403,
    });
    const [nobody] = await db.query(`select 1 from audit_entry where action = 'api.request' and actor_id is null`);
    expect(nobody).toBeUndefined();
  });

  it('has the called tools, on the account of the credential in the argument', async () => {
    const [account, other] = [await newAccount(), await newAccount()];
    const authorization = `Bearer ${other.accessToken}`;
    await callTool('add_ssh_key', { public_key: KEY, access_token: account.accessToken }, { authorization });
    await callTool('remove_ssh_key', { id: 'sshkey_nonsense', access_token: account.accessToken });
    await callTool('list_ssh_keys', { access_token: account.accessToken });
    const entries = await requests(account, 2);
    expect(entries.map(({ method, path, status }) => [method, path, status])).toEqual([
      ['POST', '/mcp#remove_ssh_key', 404],
      ['POST', '/mcp#add_ssh_key', 200],
    ]);
    expect((await other.rest('GET', `${LOG}?action=api.request`)).body.data).toEqual([]);
  });

  it('has GraphQL mutations', async () => {
    const account = await newAccount();
    await account.graphql(
      `mutation ($key: PublicKey!) {
        secret_alias: addSshKey(input: { publicKey: $key }) { id }
        deleteServer(orderNumber: "SRV-0000000000") { refundedUsd }
      }`,
      { key: KEY },
    );
    await account.graphql('query { balance { balanceUsd } }');
    const entries = await requests(account, 2);
    expect(entries.map(({ path, status }) => [path, status])).toEqual([
      ['/graphql#deleteServer', 404],
      ['/graphql#addSshKey', 200],
    ]);
  });

  it('has a request whose caller hung up before the answer', async () => {
    const account = await newAccount();
    const body = JSON.stringify({ amount_usd: 30, crypto: 'BTC' });
    const socket = connect(Number(new URL(publicUrl).port), '127.0.0.1');
    await db.transaction(async (tx) => {
      await tx.query('select from balance where account_id = $1 for update', [account.id]);
      socket.write(
        `POST /v1/billing/topups HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${account.accessToken}\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      );
      const waiting = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
      await eventually(async () => (await db.query(waiting)).length);
      socket.destroy();
    });
    await eventually(async () => (await account.rest('GET', '/v1/billing/topups')).body.data.length);
    const [request] = await requests(account, 1);
    expect(request).toMatchObject({ path: '/v1/billing/topups', status: 200 });
  });

  it('has no body, credential, query or address', async () => {
    const account = await newAccount();
    const secrets = ['secret-comment', 'secret-query', 'secret user data', account.password, account.accessToken];
    await account.rest('POST', '/v1/ssh-keys?secret-query=1', { public_key: KEY });
    await account.rest('POST', '/v1/ssh-keys', { public_key: KEY });
    await account.rest('POST', '/v1/servers', { service_code: 'vps-1', user_data: 'secret user data' });
    await anonymous('POST', '/v1/auth/login', { email: account.email, password: account.password });
    await requests(account, 3);
    const rows = await db.query<{ text: string }>('select to_jsonb(audit_entry)::text as text from audit_entry');
    const text = rows.map((row) => row.text).join('\n');
    expect(text).toContain('/v1/ssh-keys');
    for (const secret of [...secrets, account.email, '127.0.0.1', '::1']) expect(text).not.toContain(secret);
  });

  it('is read page by page, without gaps or repetitions while it grows', async () => {
    const account = await newAccount();
    for (let i = 0; i < 6; i++) await account.rest('POST', '/v1/auth/api-keys', { name: `key ${i}`, scope: 'read' });
    await requests(account, 6);
    const whole = (await account.rest('GET', LOG)).body.data as Entry[];
    const seen: Entry[] = [];
    for (let cursor = ''; ; ) {
      const { body } = await account.rest('GET', `${LOG}?limit=4${cursor && `&cursor=${cursor}`}`);
      seen.push(...body.data);
      if (!body.has_more) break;
      cursor = body.next_cursor;
      await account.rest('POST', '/v1/servers', {});
    }
    expect(seen).toEqual(whole);
    expect(whole).toHaveLength(13);
    const { body } = await account.rest('GET', `${LOG}?limit=4`);
    const wrong = await account.rest('GET', `${LOG}?limit=4&action=api.request&cursor=${body.next_cursor}`);
    expect([wrong.status, wrong.body.code]).toEqual([400, 'invalid_cursor']);
  });

  it('selects by time: since is inclusive, until is exclusive', async () => {
    const account = await newAccount();
    await account.rest('POST', '/v1/auth/api-keys', { name: 'one', scope: 'read' });
    const [created] = (await account.rest('GET', `${LOG}?action=api_key.created`)).body.data;
    const count = async (query: string) =>
      (await account.rest('GET', `${LOG}?action=api_key.created&${query}`)).body.data.length;
    const after = new Date(Date.parse(created.created_at) + 1).toISOString();
    expect(await count(`since=${created.created_at}`)).toBe(1);
    expect(await count(`since=${after}`)).toBe(0);
    expect(await count(`until=${created.created_at}`)).toBe(0);
    expect(await count(`until=${after}`)).toBe(1);
    expect(await count(`since=${created.created_at}&until=${after}`)).toBe(1);
    expect(await count('since=0001-01-01T00:00:00Z&until=9999-12-31T23:59:59Z')).toBe(1);
    expect(await count('since=9999-12-31T23:59:59-23:59')).toBe(0);
    expect(await count('since=0001-01-01&until=9999-12-31')).toBe(1);
  });

  it.each([
    'since=yesterday',
    'since=2026-02-30T00:00:00Z',
    'since=2026-02-30',
    'since=2016-12-31T23:59:60Z',
    'until=',
    'since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z',
    'action=',
    'action=Server',
    "action=server.created'--",
    `action=${'a'.repeat(60)}.created`,
    'actor=me',
    'limit=x',
  ])('refuses ?%s', async (query) => {
    const { rest } = await newAccount();
    const { status, body } = await rest('GET', `${LOG}?${query}`);
    expect([status, body.code]).toEqual([400, 'invalid_query']);
  });

  it('comes as a whole in JSON Lines, page after page', async () => {
    const account = await newAccount();
    await db.query(
      `insert into audit_entry (id, account_id, action, actor_type)
        select 'aud_' || lpad(n::text, 26, '0'), $1, 'server.updated', 'system' from generate_series(1, 450) as n`,
      [account.id],
    );
    const accept = { accept: 'application/x-ndjson' };
    const { body, headers } = await account.rest('GET', `${LOG}?action=server.updated`, undefined, accept);
    expect(headers.get('content-type')).toBe('application/x-ndjson');
    const lines = (body as string).trimEnd().split('\n');
    const ids = lines.map((line) => JSON.parse(line).id as string);
    expect(ids).toHaveLength(450);
    expect(ids).toEqual([...new Set(ids)].sort().reverse());
    const page = (await account.rest('GET', `${LOG}?action=server.updated`, undefined, { accept: '*/*' })).body;
    expect(JSON.parse(lines[0]!)).toEqual(page.data[0]);
    const rest = await account.rest(
      'GET',
      `${LOG}?action=server.updated&cursor=${page.next_cursor}`,
      undefined,
      accept,
    );
    expect(rest.body.trimEnd().split('\n')).toHaveLength(400);
    expect((await account.rest('GET', `${LOG}?cursor=x`, undefined, accept)).body.code).toBe('invalid_cursor');
  });

  it('hides entries of other accounts, and rejects their cursors', async () => {
    const [theirs, mine] = [await newAccount(), await newAccount()];
    for (let i = 0; i < 3; i++) await theirs.rest('POST', '/v1/auth/api-keys', { name: 'theirs', scope: 'read' });
    const own = (await mine.rest('GET', LOG)).body.data as Entry[];
    expect(own.map(({ action }) => action)).toEqual(['session.created']);
    const { body } = await theirs.rest('GET', `${LOG}?limit=1`);
    const { body: page } = await mine.rest('GET', `${LOG}?limit=1&cursor=${body.next_cursor}`);
    expect(page.data.every(({ id }: Entry) => id === own[0].id)).toBe(true);
  });
});
