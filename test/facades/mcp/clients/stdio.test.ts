import { describe, expect, it } from 'vitest';
import { eventually, startFreehold } from '../../../setup/freehold.ts';
import { callPaid } from '../paying.ts';
import { STDIO_AGENTS } from './stdio-package.ts';

const freehold = await startFreehold();
const FREEHOLD_URL = freehold.publicUrl;
const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILZo0JzYJEHChHBt6zG/B6cGUZpbFXeUqaufc1ki+RX/ agent@nowhere';

let agents = 0;
describe.each(STDIO_AGENTS)('Over stdio, the official client %s at %s', (_, version, connect) => {
  it('pays for a call by x402, and gets the receipt', async () => {
    const { accessToken } = await freehold.newAccount();
    const agent = await connect({ FREEHOLD_URL, FREEHOLD_API_KEY: accessToken });
    const { unpaid, paid } = await callPaid(agent, 'order_server', { service_code: 'vps-1' });
    expect(unpaid).toMatchObject({ code: 'insufficient_balance', required_usd: 6 });
    expect(paid.structuredContent.paid_by).toBe('x402');
    expect(paid._meta['x402/payment-response']).toMatchObject({ success: true, network: 'eip155:84532' });
  });

  it.each(['access_token alone', 'the key of the environment'])('runs the whole journey with %s', async (way) => {
    const asked: string[] = [];
    const user = (message: string) => {
      asked.push(message);
      return { action: 'accept', content: { confirm: true } };
    };
    let agent = await connect({ FREEHOLD_URL }, { user });
    expect(agent.version).toBe(version);
    expect(agent.client.getServerVersion()).toMatchObject({ name: 'freehold', version: '1.1.0' });
    const email = `stdio-${++agents}@example.org`;
    const registered = await agent.call('register_account', { email, password: 'a heron on the roof' });
    const access_token = registered.content.tokens.access_token;
    const named = { name: 'agent', scope: 'servers billing', access_token };
    const { content: key } = await agent.call('create_api_key', named);
    const byEnvironment = way !== 'access_token alone';
    if (byEnvironment) agent = await connect({ FREEHOLD_URL, FREEHOLD_API_KEY: key.plaintext }, { user });
    const credential = byEnvironment ? {} : { access_token: key.plaintext };
    const { call } = agent;
    expect((await call('add_ssh_key', { public_key: KEY, ...credential })).content.fingerprint).toMatch(/^SHA256:/);
    await call('create_topup', { amount_usd: 50, crypto: 'xmr', ...credential });
    await eventually(async () => (await call('get_balance', credential)).content.balance_usd === 50);

    const progress: string[] = [];
    const { content: ordered } = await call('order_server', { service_code: 'vps-1', ...credential });
    const { order_number } = ordered;
    const waiting = { order_number, status: 'running', ...credential };
    const onprogress = ({ message }: { message: string }) => progress.push(message);
    const { content: running } = await call('wait_for_server', waiting, { onprogress });
    expect(running).toMatchObject({ order_number, status: 'running' });
    // A host may drop the last message, which arrives together with the answer.
    expect(progress.every((message) => message.startsWith(`${order_number} is `))).toBe(true);

    const { content: unread } = await call('get_server', { order_number, ...credential });
    expect(unread.status).toBe('running');
    if (byEnvironment) expect((await agent.read(`freehold://servers/${order_number}`)).status).toBe('running');
    const { content: deleting } = await call('cancel_server', { order_number, ...credential });
    expect(deleting).toMatchObject({ order_number, status: 'deleting' });
    expect(asked).toEqual([expect.stringContaining(order_number)]);
  });

  it('confirms by the order number if it cannot ask the user, and gets updates', async () => {
    const account = await freehold.newAccount();
    await account.fund(30);
    const { call, watch } = await connect({ FREEHOLD_URL, FREEHOLD_API_KEY: account.accessToken });
    const { order_number } = (await call('order_server', { service_code: 'vps-1' })).content;
    const changed: string[] = [];
    const uri = `freehold://servers/${order_number}`;
    const unwatch = await watch(uri, (one) => changed.push(one));
    await call('get_server', { order_number, wait_for: 'running' });
    const refused = await call('cancel_server', { order_number });
    expect(refused).toMatchObject({ isError: true, content: { code: 'validation_failed' } });
    const { content } = await call('cancel_server', { order_number, confirm: order_number });
    expect(content.status).toBe('deleting');
    await eventually(async () => changed.includes(uri));
    await unwatch();
  });

  it('lists only the read-only tools of the toolsets in the environment', async () => {
    const { tools } = await connect({
      FREEHOLD_URL: `${FREEHOLD_URL}/`,
      FREEHOLD_TOOLSETS: 'servers, catalog',
      FREEHOLD_READONLY: '1',
    });
    const names = (await tools()).map(({ name }) => name);
    expect(names).toContain('list_catalog');
    expect(names).toContain('get_server');
    for (const hidden of ['order_server', 'cancel_server', 'get_balance']) expect(names).not.toContain(hidden);
  });
});
