/** The TypeScript SDK against the service: orders, lists, retries, payments and errors. */
import { x402Client } from '@x402/core/client';
import { encodePaymentSignatureHeader } from '@x402/core/http';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import { describe, expect, it } from 'vitest';
import { Freehold, FreeholdError, type Options } from '../../../facades/client/src/index.ts';
import { newPayer } from '../../payments/x402/clients.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { between as betweenOf } from './proxy.ts';

const { publicUrl, newAccount } = await startFreehold();
const between = (answers: Parameters<typeof betweenOf>[1]) => betweenOf(publicUrl, answers);
const PUBLIC_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKkm4o3AUy9jM9UwkKx6CTVn0hlpPpAZYSbY9mNu7SYv';

async function client(usd = 0, options: Options = {}): Promise<Freehold> {
  const account = await newAccount();
  if (usd) await account.fund(usd);
  return new Freehold({ url: publicUrl, apiKey: account.accessToken, ...options });
}

describe('A customer', () => {
  it('registers, orders a server, waits until it runs, and deletes it', async () => {
    const stranger = new Freehold({ url: publicUrl });
    const { tokens } = await stranger.account.register({ email: 'sdk@example.org', password: 'correct horse battery' });
    const freehold = new Freehold({ url: `${publicUrl}/`, apiKey: tokens.access_token });
    const { order_number: topUp } = await freehold.topUps.create({ amount_usd: 50, crypto: 'USDC-BASE' });
    expect(await freehold.topUps.settled(topUp)).toMatchObject({ status: 'confirmed' });
    const key = await freehold.sshKeys.add({ public_key: PUBLIC_KEY });
    const order = await freehold.servers.order({ service_code: 'vps-1', ssh_key_ids: [key.id] });
    const seen: string[] = [];
    const server = await order.ready({ onChange: ({ status }) => void seen.push(status) });
    expect(server).toMatchObject({ status: 'running', order_number: order.order_number });
    expect(seen.at(-1)).toBe('running');
    await freehold.servers.stop(order.order_number);
    expect(await freehold.servers.settled(order.order_number, 'stopped')).toMatchObject({ status: 'stopped' });
    expect(await freehold.servers.delete(order.order_number)).toMatchObject({ status: 'deleting' });
  });

  it('iterates over all pages of a list, and stops where it likes', async () => {
    const freehold = await client();
    for (const name of ['a', 'b', 'c', 'd', 'e']) await freehold.apiKeys.create({ name, scope: 'read' });
    const names: string[] = [];
    for await (const key of freehold.apiKeys.list({ limit: 2 })) names.push(key.name);
    expect(names).toEqual(['e', 'd', 'c', 'b', 'a']);
    expect((await freehold.apiKeys.list({ limit: 2 }).all(3)).map(({ name }) => name)).toEqual(['e', 'd', 'c']);
    const page = await freehold.apiKeys.list({ limit: 2 }).page();
    expect(page).toMatchObject({ has_more: true, data: [{ name: 'e' }, { name: 'd' }] });
  });

  it('learns the price of an order without an order', async () => {
    const freehold = await client(100);
    expect(await freehold.servers.quote({ service_code: 'vps-1' })).toMatchObject({ total_usd: 6, sufficient: true });
    expect(await freehold.servers.list().all()).toEqual([]);
  });

  it('calls operations and paths without a method', async () => {
    const freehold = await client();
    expect(await freehold.call('ListSessions', { limit: 1 })).toMatchObject({ data: [{ current: true }] });
    expect(await freehold.api('GET', '/v1/account/balance')).toMatchObject({ balance_usd: 0 });
  });
});

describe('An error', () => {
  it('has the code, the refused fields and the id of the call', async () => {
    const freehold = await client();
    const error = await freehold.servers.order({ service_code: 'vps1' }).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(FreeholdError);
    expect(error).toMatchObject({
      ...{ status: 422, code: 'unknown_service_code', idempotencyKey: expect.any(String) },
      ...{ requestId: expect.any(String), errors: [{ field: 'service_code' }] },
      message: expect.stringContaining('Did you mean vps-1?'),
    });
  });

  it('of a server that failed is thrown by ready()', async () => {
    const failed = { order_number: 'SRV-1', status: 'failed', failure: { code: 'out_of_stock', message: 'Sold.' } };
    const answer = async () => Response.json(failed);
    const freehold = new Freehold({ fetch: answer });
    await expect(freehold.servers.ready('SRV-1')).rejects.toMatchObject({ code: 'out_of_stock', message: 'Sold.' });
  });

  it('names the address that does not answer, after the last try', async () => {
    const freehold = new Freehold({ url: 'http://127.0.0.1:1', tries: 1 });
    await expect(freehold.catalog.get()).rejects.toMatchObject({
      ...{ code: 'no_answer', status: 0 },
      message: expect.stringMatching(/^http:\/\/127\.0\.0\.1:1 does not answer/),
    });
  });
});

describe('A call is repeated', () => {
  it('with its idempotency key when its answer is lost, and acts once', async () => {
    const { url, keys } = await between([
      async (forward) => {
        await forward();
        throw new Error('The answer is lost.');
      },
    ]);
    const freehold = await client(100, { url });
    const order = await freehold.servers.order({ service_code: 'vps-1' });
    expect(new Set(keys).size).toBe(1);
    expect((await freehold.servers.list().all()).map((one) => one.order_number)).toEqual([order.order_number]);
  });

  it('after the pause that a 429 or 503 demands', async () => {
    const refusal = (status: number) => async () =>
      Response.json({ code: 'x', retryable: true }, { status, headers: { 'retry-after': '0' } });
    const { url, keys } = await between([refusal(429), refusal(503)]);
    const freehold = await client(0, { url });
    expect(await freehold.account.balance()).toMatchObject({ balance_usd: 0 });
    expect(keys).toHaveLength(3);
  });

  it('never without a key, and never after a refusal that stays', async () => {
    const away = async () => {
      throw new Error('away');
    };
    const { url, keys } = await between([away, away]);
    const freehold = await client(0, { url });
    await expect(freehold.account.login({ email: 'a@example.org', password: 'x' })).rejects.toMatchObject({
      code: 'no_answer',
    });
    expect(keys).toHaveLength(1);
    await expect(freehold.servers.get('SRV-0000000000')).rejects.toMatchObject({ code: 'not_found' });
    expect(keys).toHaveLength(3);
  });

  it('not after a demand for a pause of more than a minute, which the error tells', async () => {
    let calls = 0;
    const refusal = { status: 429, headers: { 'retry-after': '61' } };
    const freehold = new Freehold({
      fetch: async () => Response.json({ code: 'rate_limited', calls: ++calls }, refusal),
    });
    await expect(freehold.catalog.get()).rejects.toMatchObject({ code: 'rate_limited', retryAfterSeconds: 61 });
    expect(calls).toBe(1);
  });

  it('not any more once its signal is aborted', async () => {
    const controller = new AbortController();
    const freehold = new Freehold({
      fetch: async () => {
        controller.abort(new Error('enough'));
        return Response.json({ retryable: true }, { status: 503 });
      },
    });
    await expect(freehold.catalog.get({ signal: controller.signal })).rejects.toThrow('enough');
  });
});

describe('A payment by x402', () => {
  const signer = new x402Client().setSpendControls({ maxAmountPerPayment: '$10000' });
  registerExactEvmScheme(signer, { signer: newPayer() });

  it('is signed by the given signer, and pays the order', async () => {
    const demands: string[] = [];
    const freehold = await client(0, {
      pay: async ({ header, body }) => {
        demands.push(String(body.code));
        const demand = JSON.parse(Buffer.from(header, 'base64').toString());
        return encodePaymentSignatureHeader(await signer.createPaymentPayload(demand));
      },
    });
    const order = await freehold.servers.order({ service_code: 'vps-1' });
    expect(order).toMatchObject({ paid_by: 'x402' });
    expect(await order.ready()).toMatchObject({ status: 'running' });
    expect(demands).toEqual(['insufficient_balance']);
    const paid = await freehold.topUps.create({ amount_usd: 30 }, { payment: 'x402' });
    expect(paid).toMatchObject({ mode: 'x402', status: 'confirmed' });
  });

  it('fails with the 402 if the signer refuses', async () => {
    const freehold = await client(0, { pay: async () => undefined });
    const refused = freehold.servers.order({ service_code: 'vps-1' });
    await expect(refused).rejects.toMatchObject({ status: 402, code: 'insufficient_balance' });
  });
});
