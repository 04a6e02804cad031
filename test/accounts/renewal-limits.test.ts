/** A credential with a spending limit causes no renewals: they happen later, and its limit cannot count them. */
import { describe, expect, it } from 'vitest';
import { startFreehold, type TestAccount } from '../setup/freehold.ts';
import { type Answer, restClient } from '../setup/spawn.ts';
import { callTool } from '../setup/tool.ts';

const { newAccount, publicUrl } = await startFreehold();
const refusal = ({ status, body }: Answer) => [status, body.code];
const EXCEEDED = [403, 'spend_limit_exceeded'];
const VPS = { service_code: 'vps-1' };

/** A funded account with a key of 20 USD a month. */
async function setUp() {
  const account = await newAccount();
  await account.fund(100);
  const limited = { name: 'limited', scope: 'full', spend_limit_usd: 20 };
  const { plaintext } = (await account.rest('POST', '/v1/auth/api-keys', limited)).body;
  return { account, plaintext, rest: restClient(publicUrl, plaintext) };
}
async function stopped({ rest }: TestAccount, auto_renew: boolean): Promise<string> {
  const { body } = await rest('POST', '/v1/servers', { ...VPS, auto_renew });
  const path = `/v1/servers/${body.order_number}`;
  await rest('GET', `${path}?wait_for=running`);
  await rest('PATCH', path, { power_state: 'off' });
  await rest('GET', `${path}?wait_for=stopped`);
  return path;
}

describe('A credential with a spending limit', () => {
  it('orders servers without renewals, and the other credentials with them', async () => {
    const { account, plaintext, rest } = await setUp();
    expect((await rest('POST', '/v1/servers', VPS)).body.auto_renew).toBe(false);
    expect((await rest('POST', '/v1/servers', { ...VPS, auto_renew: null })).body.auto_renew).toBe(false);
    const { content } = await callTool(publicUrl, plaintext, 'order_server', VPS);
    expect(content.auto_renew).toBe(false);
    expect((await account.rest('POST', '/v1/servers', VPS)).body.auto_renew).toBe(true);
  });

  it('orders no server with renewals, not by x402, by MCP or as a quote either', async () => {
    const { account, plaintext, rest } = await setUp();
    const order = { ...VPS, auto_renew: true };
    const refused = await rest('POST', '/v1/servers', order);
    expect(refusal(refused)).toEqual(EXCEEDED);
    expect(refused.body.detail).toContain('Leave auto_renew out, or use a credential without a spending limit.');
    expect(refusal(await rest('POST', '/v1/servers', order, { 'x-payment-mode': 'x402' }))).toEqual(EXCEEDED);
    expect(refusal(await rest('POST', '/v1/servers', { ...order, dry_run: true }))).toEqual(EXCEEDED);
    expect((await callTool(publicUrl, plaintext, 'order_server', order)).content.code).toBe('spend_limit_exceeded');
    expect((await account.rest('GET', '/v1/servers')).body.data).toEqual([]);
  });

  it('resizes no server that renews itself, unless it turns that off', async () => {
    const { account, rest } = await setUp();
    const path = await stopped(account, true);
    const refused = await rest('PATCH', path, { service_code: 'vps-2' });
    expect(refusal(refused)).toEqual(EXCEEDED);
    expect(refused.body.detail).toContain('Send auto_renew: false, too, or use a credential without a spending limit.');
    expect(refusal(await rest('PATCH', path, { service_code: 'vps-2', auto_renew: true }))).toEqual(EXCEEDED);
    expect((await account.rest('GET', path)).body.status).toBe('stopped');
    const resized = await rest('PATCH', path, { service_code: 'vps-2', auto_renew: false });
    expect([resized.status, resized.body.auto_renew]).toEqual([200, false]);
  });

  it('resizes a server that does not renew itself', async () => {
    const { account, rest } = await setUp();
    expect((await rest('PATCH', await stopped(account, false), { service_code: 'vps-2' })).status).toBe(200);
  });

  it('cannot turn auto_renew on, because renewals do not count into its spending limit', async () => {
    const { account, rest } = await setUp();
    const { body } = await account.rest('POST', '/v1/servers', { service_code: 'vps-1', auto_renew: false });
    const path = `/v1/servers/${body.order_number}`;
    const refused = await rest('PATCH', path, { auto_renew: true });
    expect(refusal(refused)).toEqual(EXCEEDED);
    expect((await rest('PATCH', path, { auto_renew: false, labels: { a: 'b' } })).status).toBe(200);
    expect((await account.rest('PATCH', path, { auto_renew: true })).status).toBe(200);
    expect((await rest('PATCH', path, { auto_renew: true })).status).toBe(200);
  });
});
