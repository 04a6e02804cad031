import { describe, expect, it } from 'vitest';
import { eventually, startFreehold } from '../../setup/freehold.ts';
import { AGENTS } from './agents.ts';

const freehold = await startFreehold();
const url = new URL(`${freehold.publicUrl}/mcp`);
const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILZo0JzYJEHChHBt6zG/B6cGUZpbFXeUqaufc1ki+RX/ agent@nowhere';

let agents = 0;
describe.each(AGENTS)('The official client %s at %s', (_, version, connect) => {
  it.each(['access_token alone', 'the header'])('runs the whole journey with %s', async (way) => {
    let agent = await connect(url);
    expect(agent.version).toBe(version);
    expect(agent.client.getServerVersion()).toMatchObject({ name: 'freehold', version: '1.1.0' });
    const email = `agent-${++agents}@example.org`;
    const registered = await agent.call('register_account', { email, password: 'a heron on the roof' });
    const access_token = registered.content.tokens.access_token;
    const named = { name: 'agent', scope: 'servers billing', access_token };
    const { content: key } = await agent.call('create_api_key', named);
    const byHeader = way === 'the header';
    if (byHeader) agent = await connect(url, { credential: key.plaintext });
    const credential = byHeader ? {} : { access_token: key.plaintext };
    const { call } = agent;
    expect((await call('get_balance', credential)).content.balance_usd).toBe(0);
    expect((await call('add_ssh_key', { public_key: KEY, ...credential })).content.fingerprint).toMatch(/^SHA256:/);
    expect((await call('list_catalog')).content.vps[0].code).toBe('vps-1');

    const unpaid = await call('order_server', { service_code: 'vps-1', ...credential });
    expect(unpaid).toMatchObject({
      isError: true,
      content: { code: 'insufficient_balance', status: 402, required_usd: 6 },
    });

    const { content: topUp } = await call('create_topup', { amount_usd: 50, crypto: 'xmr', ...credential });
    expect(topUp).toMatchObject({ status: 'pending', crypto: 'XMR' });
    await eventually(async () => (await call('get_balance', credential)).content.balance_usd === 50);
    const { content: ordered } = await call('order_server', { service_code: 'vps-1', ...credential });
    const { order_number } = ordered;
    expect(ordered).toMatchObject({ status: 'pending', charged_usd: 6 });
    const { content: running } = await call('get_server', { order_number, wait_for: 'running', ...credential });
    expect(running).toMatchObject({ order_number, status: 'running' });

    const quote = await call('quote_server', { service_code: 'vps-2', ...credential });
    expect(quote.content).toMatchObject({ total_usd: 12, balance_usd: 44, sufficient: true, stock: 'available' });
    const changes = { labels: { by: 'agent' }, power_state: 'off' };
    const { content: stopping } = await call('update_server', { order_number, ...changes, ...credential });
    expect(stopping).toMatchObject({ status: 'stopping', labels: { by: 'agent' } });
    const { content: stopped } = await call('wait_for_server', { order_number, status: 'stopped', ...credential });
    expect(stopped).toMatchObject({ status: 'stopped', poll_after_seconds: null });
    const refused = await call('update_server', { order_number, action: 'reboot', ...changes, ...credential });
    expect(refused).toMatchObject({ isError: true, content: { code: 'one_operation_per_request' } });
    const { content: found } = await call('list_servers', { label_selector: 'by=agent', ...credential });
    expect(found.data).toHaveLength(1);
    const dry = await call('order_server', { service_code: 'vps-2', dry_run: true, ...credential });
    expect(dry.content).toEqual(quote.content);
    const confirmed = { order_number, confirm: order_number, ...credential };
    expect((await call('cancel_server', confirmed)).content).toMatchObject({ order_number, status: 'deleting' });
    await eventually(
      async () => (await call('get_server', { order_number, ...credential })).content.code === 'not_found',
    );
  });

  it('finds that the argument overrides the header', async () => {
    const [mine, theirs] = [await freehold.newAccount(), await freehold.newAccount()];
    await theirs.fund(30);
    const { call } = await connect(url, { credential: mine.accessToken });
    expect((await call('get_balance')).content.balance_usd).toBe(0);
    expect((await call('get_balance', { access_token: theirs.accessToken })).content.balance_usd).toBe(30);
  });

  it('gets a tool error with advice when a credential is missing, wrong or too narrow', async () => {
    const { call } = await connect(url);
    expect(await call('get_balance')).toMatchObject({ isError: true, content: { code: 'missing_credential' } });
    expect(await call('get_balance', { access_token: 'nonsense' })).toMatchObject({
      isError: true,
      content: { code: 'invalid_credential' },
    });
    const account = await freehold.newAccount();
    const { body } = await account.rest('POST', '/v1/auth/api-keys', { name: 'r', scope: 'read' });
    const refused = await call('order_server', { service_code: 'vps-1', access_token: body.plaintext });
    expect(refused).toMatchObject({
      isError: true,
      content: { code: 'insufficient_scope', required_scope: 'servers' },
    });
  });

  it('lists tools with descriptions, and no tool for planned features', async () => {
    const { tools } = await connect(url);
    const names = (await tools()).map(({ name }) => name);
    for (const name of [
      'register_account',
      'create_api_key',
      'get_balance',
      'add_ssh_key',
      'list_catalog',
      'create_topup',
      'order_server',
      'get_server',
      'cancel_server',
    ]) {
      expect(names).toContain(name);
    }
    expect((await tools()).every(({ description }) => description && description.length > 10)).toBe(true);
  });
});

it('An invalid Authorization header gets HTTP 401, a missing one does not', async () => {
  const initialize = {
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } },
  };
  const post = (headers: Record<string, string>) =>
    fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
      body: JSON.stringify(initialize),
    });
  expect((await post({})).status).toBe(200);
  const refused = await post({ authorization: 'Bearer svc_at_nonsense' });
  expect(refused.status).toBe(401);
  expect(refused.headers.get('www-authenticate')).toContain('error="invalid_token"');
});
