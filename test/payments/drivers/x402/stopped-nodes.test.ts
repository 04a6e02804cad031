/** Payments by x402 over nodes that get no new blocks, or do not answer. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import type { EvmX402 } from '../../../../provisioning/payments/drivers/x402/evm.ts';
import { readGateways } from '../../../../provisioning/payments/gateways.ts';
import { atEnd } from '../../../setup/end.ts';
import { paymentsFile } from '../../x402/chain-world.ts';
import { AMOUNT, signedPayment } from '../../x402/signed-payment.ts';
import { type Anvil, NO_ANVIL, startAnvil } from '../evm/anvil.ts';

const { signal } = new AbortController();
const MINUTE_MS = 60_000;

describe.skipIf(NO_ANVIL)('When the preferred node has stopped', async () => {
  const start = async (begin?: Date) => {
    const anvil = NO_ANVIL ? (undefined as unknown as Anvil) : await startAnvil(begin ? { begin } : {});
    atEnd(() => anvil?.stop());
    return anvil;
  };
  const live = await start();
  const stopped = await start(new Date(Date.now() - 10 * MINUTE_MS));
  const driverOf = (...nodes: Anvil[]): EvmX402 =>
    readGateways(paymentsFile(nodes[0]!.url, { rpcUrls: nodes.map(({ url }) => url) })).x402 as EvmX402;

  it('another node verifies, settles and shows a payment', async () => {
    const driver = driverOf(stopped, live);
    const { payer, authorization, signature, key } = await signedPayment(driver);
    await live.mint(payer.address, AMOUNT);
    expect(await driver.health(signal)).toEqual({ reachable: true });
    expect(await driver.verify(authorization, signature, signal)).toBeUndefined();
    const { txId } = await driver.settle(authorization, signature, { signal, exclusive: (work) => work() });
    expect(await driver.observe(key)).toEqual({ state: 'settled', txId });
    expect(await driver.observe(key, txId)).toEqual({ state: 'settled', txId });
  });

  it('a refusal of another node counts, and not what the stopped one believes', async () => {
    const driver = driverOf(stopped, live);
    const { payer, authorization, signature } = await signedPayment(driver);
    await stopped.mint(payer.address, AMOUNT);
    await live.mint(payer.address, AMOUNT - 1n);
    expect(await driver.verify(authorization, signature, signal)).toBe('invalid_exact_evm_insufficient_balance');
  });

  it.each([1, 2])(
    'and all %i nodes have, the operator is warned, and the service accepts no payment',
    async (count) => {
      const driver = driverOf(...Array.from({ length: count }, () => stopped));
      const { reachable, warning } = await driver.health(signal);
      expect([reachable, warning]).toEqual([false, expect.stringMatching(/^The newest block of the nodes is of 2/)]);
      const { key } = await signedPayment(driver);
      expect(await driver.observe(key)).toEqual({ state: 'open' });
    },
  );

  it('or is silent, another node answers within the time of a call', async () => {
    const sockets = new Set<Socket>();
    const silent = createServer((socket) => void sockets.add(socket)).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    atEnd(() => {
      for (const socket of sockets) socket.destroy();
      silent.close();
    });
    const urls = [`http://127.0.0.1:${(silent.address() as AddressInfo).port}`, live.url];
    const driver = readGateways(paymentsFile(live.url, { rpcUrls: urls })).x402 as EvmX402;
    const { key } = await signedPayment(driver);
    expect(await driver.observe(key)).toEqual({ state: 'open' });
    expect(sockets.size).toBeGreaterThan(0);
  });
});
