/** Unfinished settlements: the service loses no payment, and delivers nothing unpaid. */
import { describe, expect, it } from 'vitest';
import { verifyBooks } from '../../../entities/payments/books.ts';
import { TopUp } from '../../../entities/payments/top-up.ts';
import { createApiKey } from '../../../resolvers/accounts/auth/api-keys.ts';
import type { Context } from '../../../resolvers/context.ts';
import { createTopUp } from '../../../resolvers/payments/billing.ts';
import { deleteServer } from '../../../resolvers/servers/delete.ts';
import { orderServer } from '../../../resolvers/servers/order.ts';
import { FUNDS_MICROS, finish, traces } from '../../setup/customer-shop.ts';
import { asSuperuser } from '../../setup/database.ts';
import { eventually } from '../../setup/freehold.ts';
import {
  another,
  expireAuthorizations,
  ORDER,
  openX402Shop,
  PRICE,
  paymentFor,
  paymentForOrder,
  reconcile,
  refusalOf,
  settleOnChain,
  type X402Shop,
} from './shop.ts';

/** An order that renews nothing, since renewals are beyond a spending limit. */
const CHEAP = { ...ORDER, autoRenew: false };
/** The context of a new API key with a spending limit. */
async function limitedTo(spendLimitMicros: bigint, { context }: X402Shop): Promise<Context> {
  const { apiKey } = await createApiKey(
    { ...context, inherited: null },
    { name: 'limited', scope: 'full', spendLimitMicros },
  );
  const limits = { ipAllowlist: [], spendLimitMicros, expiresAt: null, limitedBy: null };
  const viewer = { ...context.viewer!, kind: 'api_key' as const, credentialId: apiKey.id, holder: apiKey.id, limits };
  return { ...context, viewer };
}

/** Gives all free places to other orders. */
const takeAll = ({ db }: X402Shop) => db.query(`update place set order_number = 'another' where order_number is null`);

describe('An order with an unknown settlement', () => {
  it('is pending without a hold, and completes when the chain has moved the money', async ({ onTestFinished }) => {
    const shop = await openX402Shop(onTestFinished);
    const payment = await paymentForOrder(shop.context);
    shop.chain.mood = 'silent';
    const ordered = await orderServer(shop.context, ORDER, payment);
    const { orderNumber } = ordered.server;
    expect([ordered.server.status, ordered.paidBy]).toEqual(['PENDING', 'x402']);
    expect(await traces(shop, orderNumber)).toMatchObject({ transfers: [], addresses: 0, places: 0 });
    expect(await orderServer(another(shop.context), ORDER, payment)).toEqual(ordered);
    await settleOnChain(shop);
    await reconcile(shop, 'FINAL');
    await finish(shop, orderNumber, 'RUNNING');
    const { transfers, events, balance } = await traces(shop, orderNumber);
    expect(transfers).toEqual(['topup', 'hold', 'capture']);
    expect(events).toEqual(['created', 'provisioning', 'running']);
    expect(balance).toEqual({ available: FUNDS_MICROS, held: 0n });
    expect(await orderServer(another(shop.context), ORDER, payment)).toEqual(ordered);
    expect((await verifyBooks(shop.db)).balanced).toBe(true);
    // After a day the service deletes the answer with its password, and keeps the payment.
    await shop.db.query(`update payment set created_at = now() - interval '25 hours'`);
    await shop.provisioning.payments.x402!.sweep();
    const late = await refusalOf(orderServer(another(shop.context), ORDER, payment));
    expect([late.code, late.message]).toEqual(['payment_nonce_used', `The payment was for ${orderNumber}.`]);
  });

  it('fails free of charge when the chain can never move the money', async ({ onTestFinished }) => {
    const shop = await openX402Shop(onTestFinished);
    const payment = await paymentForOrder(shop.context);
    shop.chain.mood = 'silent';
    const { server } = await orderServer(shop.context, ORDER, payment);
    await expireAuthorizations(shop);
    await reconcile(shop, 'DROPPED');
    const [failed] = await shop.db.query('select status, failure_code from server');
    expect(failed).toEqual({ status: 'FAILED', failureCode: 'payment_failed' });
    const { transfers, events, balance } = await traces(shop, server.orderNumber);
    expect([transfers, events, balance.available]).toEqual([[], ['created', 'failed'], FUNDS_MICROS]);
    expect((await deleteServer(shop.context, server.orderNumber)).refundedMicros).toBe(0n);
  });

  it('fails if payment and balance do not cover its new price, and the balance keeps the money', async ({
    onTestFinished,
  }) => {
    const shop = await openX402Shop(onTestFinished);
    const payment = await paymentForOrder(shop.context);
    shop.chain.mood = 'silent';
    const { server } = await orderServer(shop.context, ORDER, payment);
    await shop.db.query('update server set price_month_micros = 1000000000');
    await settleOnChain(shop);
    await reconcile(shop, 'FINAL');
    const [failed] = await shop.db.query('select status, failure_code from server');
    expect(failed).toEqual({ status: 'FAILED', failureCode: 'payment_failed' });
    expect((await traces(shop, server.orderNumber)).balance).toEqual({ available: FUNDS_MICROS + PRICE, held: 0n });
  });

  it('fails if other orders have used up the spending limit by then, and the balance keeps the money', async ({
    onTestFinished,
  }) => {
    const shop = await openX402Shop(onTestFinished);
    const context = await limitedTo(10_000_000n, shop);
    const payments = await Promise.all(
      [1, 2, 3].map(async () => paymentFor(await refusalOf(orderServer(context, CHEAP, { mode: 'X402' })))),
    );
    shop.chain.mood = 'silent';
    for (const payment of payments) await orderServer(another(context), CHEAP, payment);
    await settleOnChain(shop);
    await reconcile(shop, 'FINAL');
    const servers = await shop.db.query('select status, failure_code, failure_message from server order by status');
    const failed = {
      status: 'FAILED',
      failureCode: 'payment_failed',
      failureMessage:
        'The spending limit of the credential does not cover the order any more. The payment is in the balance.',
    };
    expect(servers).toEqual([failed, failed, { status: 'RUNNING', failureCode: null, failureMessage: null }]);
    const refused = await refusalOf(orderServer(another(context), CHEAP));
    expect([refused.code, refused.message]).toEqual(['spend_limit_exceeded', expect.stringContaining('spent 6 of 10')]);
    expect((await verifyBooks(shop.db)).balanced).toBe(true);
  });

  it('fails if its credential was deleted by then, with its spending limit', async ({ onTestFinished }) => {
    const shop = await openX402Shop(onTestFinished);
    const context = await limitedTo(10_000_000n, shop);
    const payment = await paymentFor(await refusalOf(orderServer(context, CHEAP, { mode: 'X402' })));
    shop.chain.mood = 'silent';
    await orderServer(another(context), CHEAP, payment);
    await asSuperuser(shop.db, 'delete from api_key where id = $1', [context.viewer!.credentialId]);
    await settleOnChain(shop);
    await reconcile(shop, 'FINAL');
    const failureMessage =
      'The credential of the order was deleted before its payment came. The payment is in the balance.';
    expect(await shop.db.query('select status, failure_message from server')).toEqual([
      { status: 'FAILED', failureMessage },
    ]);
  });

  it('fails if the last place is taken before its settlement, and the balance keeps the money', async ({
    onTestFinished,
  }) => {
    const shop = await openX402Shop(onTestFinished);
    const payment = await paymentForOrder(shop.context);
    shop.chain.mood = 'silent';
    const { server } = await orderServer(shop.context, ORDER, payment);
    await takeAll(shop);
    await settleOnChain(shop);
    await reconcile(shop, 'FINAL');
    const [failed] = await shop.db.query('select status, failure_code from server');
    expect(failed).toEqual({ status: 'FAILED', failureCode: 'out_of_stock' });
    const { transfers, addresses, balance } = await traces(shop, server.orderNumber);
    expect([transfers, addresses]).toEqual([['topup', 'hold', 'release'], 0]);
    expect(balance).toEqual({ available: FUNDS_MICROS + PRICE, held: 0n });
  });

  it('can be deleted without a refund; a later settlement goes to the balance', async ({ onTestFinished }) => {
    const shop = await openX402Shop(onTestFinished);
    const payment = await paymentForOrder(shop.context);
    shop.chain.mood = 'silent';
    const { server } = await orderServer(shop.context, ORDER, payment);
    expect((await deleteServer(shop.context, server.orderNumber)).refundedMicros).toBe(0n);
    await settleOnChain(shop);
    await reconcile(shop, 'FINAL');
    await finish(shop, server.orderNumber, 'DELETED');
    const { transfers, balance } = await traces(shop, server.orderNumber);
    expect([transfers, balance]).toEqual([['topup'], { available: FUNDS_MICROS + PRICE, held: 0n }]);
  });
});

describe('A top-up with an unknown settlement', () => {
  const AMOUNT = { amountUsd: 100_000_000n };
  const open = async (shop: X402Shop) => {
    const payment = await paymentFor(await refusalOf(createTopUp(shop.context, AMOUNT, { mode: 'X402' })));
    shop.chain.mood = 'silent';
    return createTopUp(shop.context, AMOUNT, payment);
  };

  it('is confirming, and is confirmed with its bonus when the chain has moved the money', async ({
    onTestFinished,
  }) => {
    const shop = await openX402Shop(onTestFinished);
    const { status, orderNumber } = await open(shop);
    expect(status).toBe('CONFIRMING');
    await settleOnChain(shop);
    await reconcile(shop, 'FINAL');
    const { transfers, balance } = await traces(shop, orderNumber);
    expect([transfers, balance.available]).toEqual([['topup', 'bonus'], FUNDS_MICROS + 102_000_000n]);
    const confirmed = await shop.db.source.manager.findOneByOrFail(TopUp, { orderNumber });
    expect(confirmed).toMatchObject({ status: 'CONFIRMED', creditedMicros: 102_000_000n, confirmations: 1 });
  });

  it('expires when the chain can never move the money', async ({ onTestFinished }) => {
    const shop = await openX402Shop(onTestFinished);
    const { orderNumber } = await open(shop);
    await expireAuthorizations(shop);
    await reconcile(shop, 'DROPPED');
    const { status } = await shop.db.source.manager.findOneByOrFail(TopUp, { orderNumber });
    expect([status, (await traces(shop, orderNumber)).balance.available]).toEqual(['EXPIRED', FUNDS_MICROS]);
  });
});

describe('The service trusts the chain, not the facilitator:', () => {
  it('a settled payment makes an order even if the facilitator reports a failure', async ({ onTestFinished }) => {
    const shop = await openX402Shop(onTestFinished);
    const payment = await paymentForOrder(shop.context);
    shop.chain.mood = 'lies';
    const { server } = await orderServer(shop.context, ORDER, payment);
    expect((await traces(shop, server.orderNumber)).transfers).toEqual(['topup', 'hold']);
  });

  it('a refused payment takes nothing, and may be tried again', async ({ onTestFinished }) => {
    const shop = await openX402Shop(onTestFinished);
    const payment = await paymentForOrder(shop.context);
    shop.chain.mood = 'refuses';
    const refused = await refusalOf(orderServer(shop.context, ORDER, payment));
    expect([refused.code, refused.extras.x402!.error]).toEqual(['payment_rejected', 'insufficient_funds']);
    shop.chain.mood = 'settles';
    const { server } = await eventually(() => orderServer(another(shop.context), ORDER, payment));
    expect((await traces(shop, server.orderNumber)).transfers).toEqual(['topup', 'hold']);
  });

  it('a refused payment that settles later goes to the balance', async ({ onTestFinished }) => {
    const shop = await openX402Shop(onTestFinished);
    const payment = await paymentForOrder(shop.context);
    shop.chain.mood = 'refuses';
    await refusalOf(orderServer(shop.context, ORDER, payment));
    await settleOnChain(shop);
    await reconcile(shop, 'FINAL');
    expect((await traces(shop, '')).balance.available).toBe(FUNDS_MICROS + PRICE);
  });

  it('a payment for a tier that sells out meanwhile goes to the balance', async ({ onTestFinished }) => {
    const shop = await openX402Shop(onTestFinished);
    const payment = await paymentForOrder(shop.context);
    shop.chain.afterSettle = async () => void (await takeAll(shop));
    const headers: string[] = [];
    const context = { ...shop.context, setHeader: (name: string) => void headers.push(name) };
    const refused = await refusalOf(orderServer(context, ORDER, payment));
    expect(refused.code).toBe('out_of_stock');
    expect(refused.message).toMatch(/The payment has settled: \d+ USD go to the balance\. Do not sign another/);
    expect(headers).toContain('payment-response');
    await reconcile(shop, 'FINAL');
    expect((await traces(shop, '')).balance.available).toBe(FUNDS_MICROS + PRICE);
    expect(await traces(shop, '')).toMatchObject({ addresses: 0, transfers: [] });
    await shop.db.query('update place set order_number = null');
    const { paidBy } = await orderServer(another(shop.context), ORDER, payment);
    expect([paidBy, (await traces(shop, '')).balance.available]).toEqual(['x402', FUNDS_MICROS]);
  });

  it('the gas of a reverted transaction counts, also when a repeated request sends another', async ({
    onTestFinished,
  }) => {
    const shop = await openX402Shop(onTestFinished);
    const payment = await paymentForOrder(shop.context);
    let sends = 0;
    shop.chain.settle = async () => {
      if (!sends++) await takeAll(shop);
      return { txId: `0x${sends}` } as never;
    };
    Object.assign(shop.chain, { revertedGas: async () => 100_000n });
    expect((await refusalOf(orderServer(shop.context, ORDER, payment))).code).toBe('out_of_stock');
    await shop.db.query('update place set order_number = null');
    await eventually(() => orderServer(another(shop.context), ORDER, payment));
    const counted = await shop.db.query('select sends, sent_tx_id, reverted_gas as gas from x402_authorization');
    expect(counted).toEqual([{ sends: 2, sentTxId: '0x2', gas: 100_000n }]);
  });
});

it('A repeated payment waits while its chain does not answer', async ({ onTestFinished }) => {
  const shop = await openX402Shop(onTestFinished);
  const payment = await paymentForOrder(shop.context);
  shop.chain.mood = 'refuses';
  expect((await refusalOf(orderServer(shop.context, ORDER, payment))).code).toBe('payment_rejected');
  shop.chain.mood = 'settles';
  shop.chain.observe = () => Promise.reject(new Error('away'));
  expect((await refusalOf(orderServer(another(shop.context), ORDER, payment))).code).toBe('unavailable');
  Reflect.deleteProperty(shop.chain, 'observe');
  expect((await orderServer(another(shop.context), ORDER, payment)).paidBy).toBe('x402');
});

it('Copies of a payment at two replicas make one order', async ({ onTestFinished }) => {
  const shop = await openX402Shop(onTestFinished);
  const payment = await paymentForOrder(shop.context);
  const replicas = [shop.context, await shop.replica()];
  const answers = await Promise.all(
    Array.from({ length: 16 }, (_, i) => orderServer(another(replicas[i % 2]!), ORDER, payment)),
  );
  for (const answer of answers) expect(answer).toEqual(answers[0]);
  const [counted] = await shop.db.query('select count(*)::int as servers from server');
  expect(counted).toEqual({ servers: 1 });
  expect((await traces(shop, '')).balance).toEqual({ available: FUNDS_MICROS, held: PRICE });
});
