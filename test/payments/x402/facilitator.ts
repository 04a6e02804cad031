/** An external x402 facilitator over HTTP with faults of the test. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { x402Facilitator } from '@x402/core/facilitator';
import { toFacilitatorEvmSigner } from '@x402/evm';
import { ExactEvmScheme } from '@x402/evm/exact/facilitator';
import type { Anvil } from '../drivers/evm/anvil.ts';

/** Lies: settles and reports a failure. Hangs up: settles without an answer. Dies: does nothing, without an answer. */
type Mood = 'honest' | 'lies' | 'hangs up' | 'dies';

export async function startFacilitator(anvil: Anvil) {
  const wallet = anvil.wallet(3);
  const signer = toFacilitatorEvmSigner({ address: wallet.account.address, ...wallet } as never);
  const facilitator = new x402Facilitator().register(`eip155:${anvil.chain.id}`, new ExactEvmScheme(signer));
  const asked: string[] = [];
  const server = createServer(async (request, response) => {
    const path = request.url!.slice(1);
    asked.push(`${path} ${request.headers['x-api-key']}`);
    const say = (body: object) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (path === 'supported') return say(facilitator.getSupported());
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { paymentPayload, paymentRequirements } = JSON.parse(Buffer.concat(chunks).toString());
    if (path === 'verify') return say(await facilitator.verify(paymentPayload, paymentRequirements));
    if (controls.mood === 'dies') return response.destroy();
    const settled = await facilitator.settle(paymentPayload, paymentRequirements);
    if (controls.mood === 'hangs up') return response.destroy();
    if (controls.mood === 'honest') return say(settled);
    return say({ ...settled, success: false, transaction: '', errorReason: 'invalid_exact_evm_transaction_failed' });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const controls = {
    url: `http://127.0.0.1:${port}`,
    mood: 'honest' as Mood,
    /** The called paths with their keys. */
    asked,
    /** Stops the server until the next start. */
    stop: async () => {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
    start: () => once(server.listen(port, '127.0.0.1'), 'listening'),
  };
  return controls;
}
