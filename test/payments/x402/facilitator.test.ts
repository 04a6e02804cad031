/** Settlement by an external facilitator over HTTP. The service trusts only the chain. */
import { beforeEach, describe, expect, it } from 'vitest';
import { atEnd } from '../../setup/end.ts';
import { eventually } from '../../setup/freehold.ts';
import { NO_ANVIL } from '../drivers/evm/anvil.ts';
import { openX402World, type X402World } from './chain-world.ts';
import { sign, version2 } from './clients.ts';
import { startFacilitator } from './facilitator.ts';

const ORDER = { service_code: 'vps-1', hostname: 'web' };

describe.skipIf(NO_ANVIL)('With an external facilitator', async () => {
  let facilitator!: Awaited<ReturnType<typeof startFacilitator>>;
  const world = NO_ANVIL
    ? (undefined as unknown as X402World)
    : await openX402World(async (anvil) => {
        facilitator = await startFacilitator(anvil);
        return { facilitatorUrl: facilitator.url, facilitatorHeaders: { 'x-api-key': 'secret' }, settleSeconds: 15 };
      });
  atEnd(() => facilitator?.stop());
  beforeEach(() => {
    facilitator.mood = 'honest';
  });

  async function signedOrder() {
    const [account, payer] = [await world.newAccount(), await world.newRichPayer()];
    const signed = await sign(await account.rest('POST', '/v1/servers', ORDER), { payer });
    return { account, payer, pay: () => account.rest('POST', '/v1/servers', ORDER, version2(signed)) };
  }
  const expectBalanced = async () => {
    const { chain, books } = await world.totals();
    expect(chain).toBe(books);
  };

  it('the service pays for an order, and sends its key to the facilitator', async () => {
    const { pay } = await signedOrder();
    const { status, headers } = await pay();
    expect([status, Boolean(headers.get('payment-response'))]).toEqual([200, true]);
    expect(facilitator.asked).toEqual(expect.arrayContaining(['verify secret', 'settle secret']));
    await expectBalanced();
  });

  it.each(['lies', 'hangs up'] as const)('a paid order is made even if the facilitator %s', async (mood) => {
    const { account, pay } = await signedOrder();
    facilitator.mood = mood;
    const { status, body, headers } = await pay();
    expect([status, body.paid_by, Boolean(headers.get('payment-response'))]).toEqual([200, 'x402', true]);
    expect(await account.balance()).toBe(0);
    await expectBalanced();
  });

  it('an absent facilitator takes nothing, and settles the same payment when it is back', async () => {
    const { account, pay } = await signedOrder();
    await facilitator.stop();
    const { status, body } = await pay();
    expect([status, body.code]).toEqual([503, 'unavailable']);
    expect(await world.db.query('select from payment where account_id = $1', [account.id])).toEqual([]);
    await facilitator.start();
    expect((await pay()).status).toBe(200);
    await expectBalanced();
  });

  it('an order completes by itself if the facilitator dies and is back before the payment expires', async () => {
    const { account, pay } = await signedOrder();
    facilitator.mood = 'dies';
    const { status, body } = await pay();
    expect([status, body.status]).toEqual([200, 'pending']);
    facilitator.mood = 'honest';
    // Lets some time pass.
    await world.db.query(`update payment set created_at = now() - interval '20 seconds' where account_id = $1`, [
      account.id,
    ]);
    await eventually(async () => {
      const { body: server } = await account.rest('GET', `/v1/servers/${body.order_number}`);
      return server.status === 'running';
    });
    const isKept = async () =>
      (
        await world.db.query(
          'select 1 from x402_authorization join payment on id = payment_id where account_id = $1 and sealed_payment is not null',
          [account.id],
        )
      ).length > 0;
    expect(await isKept()).toBe(true);
    await world.anvil.control.mine({ blocks: 70 });
    // The worker deletes the signature once the payment is final.
    await eventually(async () => !(await isKept()));
    expect((await pay()).headers.get('payment-response')).toBeTruthy();
    await expectBalanced();
  });

  it('an order stays pending while the facilitator is dead, and fails free of charge when the payment expires', async () => {
    const { account, payer, pay } = await signedOrder();
    facilitator.mood = 'dies';
    const { status, body } = await pay();
    expect([status, body.status]).toEqual([200, 'pending']);
    const { client, control, balance } = world.anvil;
    const { timestamp } = await client.getBlock();
    await control.increaseTime({ seconds: 400 });
    await control.mine({ blocks: 70 });
    expect((await client.getBlock()).timestamp).toBeGreaterThan(timestamp + 360n);
    const failed = await eventually(async () => {
      const { body: server } = await account.rest('GET', `/v1/servers/${body.order_number}`);
      return server.status === 'failed' && server;
    });
    expect(failed.failure.code).toBe('payment_failed');
    expect([await account.balance(), await balance(payer.address)]).toEqual([0, 1_000_000_000n]);
    await expectBalanced();
  });
});
