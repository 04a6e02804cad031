import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Secret, TOTP } from 'otpauth';
import { describe, expect, it } from 'vitest';
import { startFreehold } from '../../setup/freehold.ts';

const { newAccount, publicUrl, db } = await startFreehold();
const client = new Client({ name: 'test', version: '1.0.0' });
await client.connect(new StreamableHTTPClientTransport(new URL(`${publicUrl}/mcp`)));
const call = async (name: string, args: Record<string, unknown>) =>
  // biome-ignore lint/suspicious/noExplicitAny: the test checks the answer
  (await client.callTool({ name, arguments: args })).structuredContent as any;

describe('An agent', () => {
  it('logs in with a second factor, and refreshes its tokens once', async () => {
    const { rest, email, password, id } = await newAccount();
    const { secret } = (await rest('POST', '/v1/auth/totp/setup', { password })).body;
    const code = async () => {
      await db.query('update totp set last_step = 0 where account_id = $1', [id]);
      return new TOTP({ secret: Secret.fromBase32(secret) }).generate();
    };
    await rest('POST', '/v1/auth/totp/enable', { totp_code: await code() });
    const pending = await call('login', { email, password });
    expect(pending).toEqual({ totp_required: true, login_token: expect.any(String), expires_in: 300 });
    const { tokens } = await call('login_totp', { login_token: pending.login_token, totp_code: await code() });
    expect((await call('get_account', { access_token: tokens.access_token })).id).toBe(id);
    const refreshed = await call('refresh_token', { refresh_token: tokens.refresh_token });
    expect((await call('get_account', { access_token: refreshed.tokens.access_token })).totp_enabled).toBe(true);
    expect((await call('refresh_token', { refresh_token: tokens.refresh_token })).code).toBe('refresh_token_reused');
  });

  it('makes a key with limits', async () => {
    const { accessToken: access_token } = await newAccount();
    const limits = { ip_allowlist: '127.0.0.1', expires_at: '2099-01-01T00:00:00.000Z', spend_limit_usd: 12.5 };
    const key = await call('create_api_key', { name: 'k', scope: 'servers', access_token, ...limits });
    expect(key).toMatchObject({ ...limits, ip_allowlist: ['127.0.0.1/32'], status: 'active' });
    const { data } = await call('list_api_keys', { access_token, status: 'active' });
    expect(data).toHaveLength(1);
  });

  it('lists the tools with the arguments of the contract', async () => {
    const { tools } = await client.listTools();
    const argumentsOf = (name: string) =>
      Object.keys(tools.find((tool) => tool.name === name)!.inputSchema.properties ?? {}).sort();
    expect(argumentsOf('login')).toEqual(['email', 'password', 'totp_code']);
    expect(argumentsOf('login_totp')).toEqual(['login_token', 'totp_code']);
    expect(argumentsOf('refresh_token')).toEqual(['refresh_token']);
    expect(argumentsOf('create_api_key')).toEqual([
      'access_token',
      'expires_at',
      'ip_allowlist',
      'name',
      'scope',
      'spend_limit_usd',
      // an extension, for accounts with a second factor
      'totp_code',
    ]);
  });
});
