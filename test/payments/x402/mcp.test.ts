/** MCP agents pay for tool calls on a real chain, with the official clients of MCP and x402. */
import { PaymentRequiredV2Schema } from '@x402/core/schemas';
import { describe, expect, it } from 'vitest';
import { AGENTS } from '../../facades/mcp/agents.ts';
import { callPaid } from '../../facades/mcp/paying.ts';
import { NO_ANVIL } from '../drivers/evm/anvil.ts';
import { openX402World, type X402World } from './chain-world.ts';

const ORDER = { service_code: 'vps-1', hostname: 'web' };

describe.skipIf(NO_ANVIL)('On a chain, an agent', async () => {
  const world = NO_ANVIL ? (undefined as unknown as X402World) : await openX402World();
  const url = () => new URL(`${world.publicUrl}/mcp`);

  it.each(AGENTS)('by the client of SDK %s at %s orders a server and pays for it', async (_, __, connect) => {
    const [account, payer, before] = [await world.newAccount(), await world.newRichPayer(), await world.totals()];
    const agent = await connect(url(), { credential: account.accessToken });
    // Listed tools have output schemas, and some clients check answers against them.
    await agent.tools();
    const { unpaid, payment, paid } = await callPaid(agent, 'order_server', ORDER, payer);
    expect(unpaid).toMatchObject({
      ...{ code: 'insufficient_balance', status: 402, retryable: true, required_usd: 6, x402Version: 2 },
      ...{ error: 'insufficient_balance', resource: { url: `${world.publicUrl}/v1/servers` } },
      accepts: [{ scheme: 'exact', network: 'eip155:8453', amount: '6000000' }],
    });
    expect(paid.isError).toBeFalsy();
    expect(paid.structuredContent).toMatchObject({ paid_by: 'x402', charged_usd: 6 });
    expect(paid._meta['x402/payment-response']).toMatchObject({
      ...{ success: true, network: 'eip155:8453', payer: payer.address.toLowerCase() },
      transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
    });
    const again = await agent.client.callTool({
      ...{ name: 'order_server', arguments: ORDER },
      _meta: { 'x402/payment': payment },
    });
    expect([again.structuredContent, again._meta]).toEqual([paid.structuredContent, paid._meta]);
    const { chain, books } = await world.totals();
    expect([chain, books]).toEqual([before.chain + 6_000_000n, before.books + 6_000_000n]);
  });

  it('tops up without naming a coin, and gets its receipt again by the idempotency key alone', async () => {
    const [account, payer] = [await world.newAccount(), await world.newRichPayer()];
    const agent = await AGENTS.at(-1)![2](url(), { credential: account.accessToken });
    const topUp = { amount_usd: 100, idempotency_key: 'one' };
    const { unpaid, paid } = await callPaid(agent, 'create_topup', topUp, payer);
    expect(unpaid).toMatchObject({ code: 'payment_required', x402Version: 2 });
    expect(paid.structuredContent).toMatchObject({ status: 'confirmed', mode: 'x402', credited_usd: 102 });
    const again = await agent.client.callTool({ name: 'create_topup', arguments: topUp });
    expect([again.structuredContent, again._meta]).toEqual([paid.structuredContent, paid._meta]);
    expect(again._meta['x402/payment-response'].success).toBe(true);
    expect(await account.balance()).toBe(102);
  });

  it.each([
    ['no object', 'payment', 'invalid_payment'],
    ['no payment', { x402Version: 2 }, 'invalid_payment'],
    ['too long', { x402Version: 2, payload: 'x'.repeat(20_000) }, 'invalid_payment'],
  ])('gets an error for an invalid payment: %s', async (_, payment, code) => {
    const account = await world.newAccount();
    const agent = await AGENTS.at(-1)![2](url(), { credential: account.accessToken });
    const { isError, structuredContent } = await agent.client.callTool({
      ...{ name: 'order_server', arguments: ORDER },
      _meta: { 'x402/payment': payment },
    });
    expect([isError, structuredContent.code, structuredContent.status]).toEqual([true, code, 400]);
  });

  it('without coins gets an error with the challenge', async () => {
    const [account, payer] = [await world.newAccount(), await world.newRichPayer(0n)];
    const agent = await AGENTS[2]![2](url(), { credential: account.accessToken });
    const { paid } = await callPaid(agent, 'order_server', ORDER, payer);
    expect([paid.isError, paid.structuredContent]).toEqual([
      true,
      expect.objectContaining({ code: 'payment_rejected', error: 'invalid_exact_evm_insufficient_balance' }),
    ]);
    expect(PaymentRequiredV2Schema.parse(paid.structuredContent).accepts).toHaveLength(1);
  });
});
