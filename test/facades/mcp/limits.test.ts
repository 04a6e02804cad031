import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { describe, expect, it } from 'vitest';
import { type Freehold, startFreehold } from '../../setup/freehold.ts';
import { restClient } from '../../setup/spawn.ts';

const freehold = await startFreehold();
const limited = await startFreehold({ RATE_LIMIT_KEY_PER_MINUTE: '25' });

async function connect({ publicUrl }: Freehold, credential: string) {
  const client = new Client({ name: 'test', version: '1.0.0' });
  const headers = { authorization: `Bearer ${credential}` };
  const url = new URL(`${publicUrl}/mcp`);
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
  return {
    client,
    call: async (name: string, args: Record<string, unknown> = {}) => {
      const result = await client.callTool({ name, arguments: args });
      // biome-ignore lint/suspicious/noExplicitAny: the test checks the answer
      return { isError: Boolean(result.isError), content: result.structuredContent as any };
    },
  };
}

describe('A tool with an idempotency key', () => {
  it('has its effect once, even if REST sends the second request', async () => {
    const { accessToken, fund, balance, rest } = await freehold.newAccount();
    await fund(30);
    const { call, client } = await connect(freehold, accessToken);
    const order = { service_code: 'vps-1', hostname: 'agent', idempotency_key: 'the-one' };
    const first = await call('order_server', order);
    const again = await call('order_server', order);
    expect(first.isError).toBe(false);
    expect(again.content).toEqual(first.content);
    const body = { hostname: 'agent', service_code: 'vps-1' };
    const byRest = await rest('POST', '/v1/servers', body, { 'idempotency-key': 'the-one' });
    expect(byRest.body).toEqual(first.content);
    expect(await balance()).toBe(24);
    const other = await call('order_server', { ...order, hostname: 'other' });
    expect([other.isError, other.content.code]).toEqual([true, 'idempotency_key_reused']);

    const topUp = { amount_usd: 30, crypto: 'BTC', idempotency_key: 'the-one' };
    const [one, two] = [await call('create_topup', topUp), await call('create_topup', topUp)];
    expect(two.content.order_number).toBe(one.content.order_number);
    const { tools } = await client.listTools();
    const keyed = tools.filter(({ inputSchema }) => inputSchema.properties?.idempotency_key);
    expect(keyed.map(({ name }) => name).sort()).toEqual(['create_topup', 'order_server']);
  });

  it('refuses an invalid key, and a key for tools that take none', async () => {
    const { call } = await connect(freehold, (await freehold.newAccount()).accessToken);
    for (const idempotency_key of ['', 'two words', 7, 'x'.repeat(256)]) {
      const { content } = await call('order_server', { service_code: 'vps-1', idempotency_key });
      expect([content.code, content.errors[0].field]).toEqual(['validation_failed', 'idempotency_key']);
    }
    const none = await call('order_server', { service_code: 'vps-1', idempotency_key: null });
    expect(none.content.code).toBe('insufficient_balance');
    expect((await call('get_balance', { idempotency_key: 'x' })).content.code).toBe('unknown_field');
  });
});

/** Repeats work that a new minute interrupted, because counts restart with each minute. */
async function inOneMinute<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    const minute = () => Math.floor(Date.now() / 60_000);
    const before = minute();
    const done = await work();
    if (minute() === before) return done;
  }
}

describe('A tool that is called too often', () => {
  it('answers with an error and the seconds to wait, over HTTP 200', async () => {
    const { results, status } = await inOneMinute(async () => {
      const { accessToken } = await limited.newAccount();
      const { call } = await connect(limited, accessToken);
      const results = await Promise.all(Array.from({ length: 30 }, () => call('get_balance')));
      const { status } = await restClient(limited.publicUrl, accessToken)('GET', '/v1/account');
      return { results, status };
    });
    const refused = results.filter(({ isError }) => isError);
    // The client has also sent initialize and a notification, and has opened a stream.
    expect(refused).toHaveLength(5 + 3);
    for (const { content } of refused) {
      expect(content).toMatchObject({ code: 'rate_limited', status: 429, retryable: true });
      expect(content.retry_after).toBeGreaterThanOrEqual(1);
    }
    // REST and MCP share one count.
    expect(status).toBe(429);
  });

  it('counts for the credential of the argument, not of the header', async () => {
    const { results, own } = await inOneMinute(async () => {
      const [one, two] = [await limited.newAccount(), await limited.newAccount()];
      const { call } = await connect(limited, one.accessToken);
      const results = await Promise.all(
        Array.from({ length: 30 }, () => call('get_balance', { access_token: two.accessToken })),
      );
      return { results, own: await call('get_balance') };
    });
    expect(results.filter(({ isError }) => isError)).toHaveLength(5);
    expect(own.isError).toBe(false);
  });
});
