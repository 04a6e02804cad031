/** Published x402 clients pay on a real chain. */
import { decodePaymentResponseHeader } from '@x402/core/http';
import { describe, expect, it } from 'vitest';
import type { TestAccount } from '../../setup/freehold.ts';
import { NO_ANVIL } from '../drivers/evm/anvil.ts';
import { PAY_TO } from '../payments-file.ts';
import { openX402World, type X402World } from './chain-world.ts';
import { withoutVersion2, x402Fetch } from './clients.ts';

const ORDER = { service_code: 'vps-1', hostname: 'web' };

const post = (account: TestAccount, body: object, headers: Record<string, string> = {}): RequestInit => ({
  method: 'POST',
  headers: { authorization: `Bearer ${account.accessToken}`, 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
});

describe.skipIf(NO_ANVIL)('On a chain, a client of x402', async () => {
  const world = NO_ANVIL ? (undefined as unknown as X402World) : await openX402World();

  it.each([
    ['2', fetch],
    ['1', withoutVersion2],
  ])('orders a server by version %s, and the coins are where they belong', async (_, send) => {
    const { newAccount, newRichPayer, publicUrl, anvil, totals } = world;
    const [account, payer, before] = [await newAccount(), await newRichPayer(), await totals()];
    const answer = await x402Fetch(payer, send)(`${publicUrl}/v1/servers`, post(account, ORDER));
    const body = await answer.json();
    expect([answer.status, body]).toEqual([
      200,
      expect.objectContaining({ status: 'pending', paid_by: 'x402', charged_usd: 6 }),
    ]);
    const { transaction } = decodePaymentResponseHeader(answer.headers.get('payment-response')!);
    const receipt = await anvil.client.getTransactionReceipt({ hash: transaction as `0x${string}` });
    expect(receipt.status).toBe('success');
    const { body: running } = await account.rest('GET', `/v1/servers/${body.order_number}?wait_for=running`);
    expect(running.status).toBe('running');
    expect(await anvil.balance(payer.address)).toBe(994_000_000n);
    const after = await totals();
    expect(after).toEqual({ chain: before.chain + 6_000_000n, books: before.books + 6_000_000n });
    expect(await account.balance()).toBe(0);
  });

  it('tops up', async () => {
    const { newAccount, newRichPayer, publicUrl, totals } = world;
    const [account, payer] = [await newAccount(), await newRichPayer()];
    const topUp = post(account, { amount_usd: 100 }, { 'x-payment-mode': 'x402' });
    const answer = await x402Fetch(payer)(`${publicUrl}/v1/billing/topups`, topUp);
    expect([answer.status, await answer.json()]).toEqual([
      200,
      expect.objectContaining({ status: 'confirmed', credited_usd: 102, network: 'base', wallet_address: PAY_TO }),
    ]);
    const { chain, books } = await totals();
    expect(chain).toBe(books);
  });

  it('costs gas, and the operator sees low gas and an unreachable chain', async () => {
    const { operator, anvil, rpc } = world;
    const seen = async () => {
      const { data } = await operator('{ gateways { name simulated coins reachable warning } }');
      return data.gateways.find(({ name }: { name: string }) => name === 'x402');
    };
    const well = { name: 'x402', simulated: false, coins: ['USDC-BASE'], reachable: true, warning: null };
    expect(await seen()).toEqual(well);
    const { address } = anvil.account(0);
    const before = await anvil.client.getBalance({ address });
    await anvil.control.setBalance({ address, value: 10n ** 15n });
    expect(await seen()).toEqual({ ...well, warning: expect.stringContaining('The gas wallet has gas for about') });
    await anvil.control.setBalance({ address, value: before });
    rpc.before = () => Promise.reject(new Error('away'));
    expect(await seen()).toEqual({ ...well, reachable: false });
    rpc.before = () => {};
  });
});
