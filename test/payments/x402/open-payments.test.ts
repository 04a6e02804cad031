/** Limits of open x402 payments, and payments that the service closes at once. */
import { describe, expect, it } from 'vitest';
import type { Settling } from '../../../provisioning/payments/drivers/x402/driver.ts';
import { createTopUp } from '../../../resolvers/payments/billing.ts';
import { orderServer } from '../../../resolvers/servers/order.ts';
import { eventually } from '../../setup/freehold.ts';
import { newPayer } from './clients.ts';
import { another, ORDER, openX402Shop, paymentFor, paymentForOrder, refusalOf, type X402Shop } from './shop.ts';

const statuses = async ({ db }: X402Shop) =>
  (await db.query<{ status: string }>('select status from payment order by id')).map(({ status }) => status);
const tasks = async ({ db }: X402Shop) => (await db.query(`select from task where process = 'x402'`)).length;

describe('Open payments', () => {
  it('of an account stop at its limit, however many requests arrive at once', async ({ onTestFinished }) => {
    const shop = await openX402Shop(onTestFinished);
    shop.chain.mood = 'silent';
    const payments = [];
    for (let i = 0; i < 12; i++) payments.push(await paymentForOrder(shop.context));
    const replica = await shop.replica();
    const answers = await Promise.allSettled(
      payments.map((payment, i) => orderServer(another(i % 2 ? replica : shop.context), ORDER, payment)),
    );
    const refused = answers.filter((answer) => answer.status === 'rejected');
    expect(answers.length - refused.length).toBe(shop.context.limits.openPayments);
    for (const { reason } of refused) expect([reason.code, reason.extras.retryAfter]).toEqual(['rate_limited', 60]);
    expect(await statuses(shop)).toHaveLength(shop.context.limits.openPayments);
  });

  it('of an account are verified two at a time, and few wait', async ({ onTestFinished }) => {
    const shop = await openX402Shop(onTestFinished);
    const payments = [];
    for (let i = 0; i < 12; i++) payments.push(await paymentForOrder(shop.context));
    let [running, most] = [0, 0];
    const verify = shop.chain.verify.bind(shop.chain);
    shop.chain.verify = async (...given) => {
      most = Math.max(most, ++running);
      const fault = await verify(...given);
      await new Promise((resume) => setTimeout(resume, 20));
      running--;
      return fault;
    };
    const context = { ...shop.context, limits: { ...shop.context.limits, openPayments: 100 } };
    const paid = await Promise.all(payments.map((payment) => orderServer(another(context), ORDER, payment)));
    expect([paid.every(({ paidBy }) => paidBy === 'x402'), most]).toEqual([true, 2]);
    const { promise: gate, resolve: open } = Promise.withResolvers<string>();
    shop.chain.verify = () => gate;
    const next = await paymentForOrder(shop.context);
    const answers = Array.from({ length: 40 }, () => refusalOf(orderServer(another(context), ORDER, next)));
    await Promise.race(answers);
    open('invalid_exact_evm_signature');
    const codes = (await Promise.all(answers)).map(({ code }) => code);
    expect(codes.filter((code) => code === 'rate_limited')).toHaveLength(14);
    expect(codes.filter((code) => code === 'payment_rejected')).toHaveLength(26);
  });

  it('of a payer stop at the limit across accounts', async ({ onTestFinished }) => {
    const shop = await openX402Shop(onTestFinished);
    shop.chain.mood = 'silent';
    const payer = newPayer();
    const open = async () => paymentForOrder(shop.context, payer);
    for (let i = 0; i < 5; i++) await orderServer(another(shop.context), ORDER, await open());
    await shop.db.query(`update payment set account_id = 'acct_other'`);
    expect((await refusalOf(orderServer(another(shop.context), ORDER, await open()))).code).toBe('rate_limited');
    const stranger = await paymentForOrder(shop.context);
    expect((await orderServer(another(shop.context), ORDER, stranger)).paidBy).toBe('x402');
  });

  it('for top-ups count into the limit of pending top-ups', async ({ onTestFinished }) => {
    const shop = await openX402Shop(onTestFinished);
    shop.chain.mood = 'silent';
    const amount = { amountUsd: 100_000_000n };
    const pay = async () =>
      createTopUp(
        another(shop.context),
        amount,
        await paymentFor(await refusalOf(createTopUp(shop.context, amount, { mode: 'X402' }))),
      );
    for (let i = 0; i < shop.context.limits.pendingTopups; i++) expect((await pay()).status).toBe('CONFIRMING');
    const refused = await refusalOf(createTopUp(shop.context, amount, { mode: 'X402' }));
    expect(refused.code).toBe('topup_limit_reached');
  });
});

describe('A payment whose signature never left the service', () => {
  /** Makes the driver answer so to settlements, without a trace on the chain. */
  const answer = (shop: X402Shop, settling: Settling) => {
    shop.chain.settle = async () => settling as never;
  };

  it.each<[string, Settling, string]>([
    ['refused', { refused: 'insufficient_funds', unsent: true }, 'payment_rejected'],
    ['not sent', { unsent: true }, 'unavailable'],
  ])('is dropped at once when it is %s, and can pay later', async (_, settling, code) => {
    const ends: (() => unknown)[] = [];
    try {
      const shop = await openX402Shop((end) => void ends.push(end));
      const { settle } = shop.chain;
      const payment = await paymentForOrder(shop.context);
      answer(shop, settling);
      for (let i = 0; i < 3; i++) {
        expect((await refusalOf(orderServer(another(shop.context), ORDER, payment))).code).toBe(code);
        await eventually(async () => (await statuses(shop)).join() === 'DROPPED');
      }
      shop.chain.settle = settle;
      shop.chain.mood = 'silent';
      const { server } = await orderServer(another(shop.context), ORDER, payment);
      expect([server.status, await statuses(shop), await tasks(shop)]).toEqual(['PENDING', ['OBSERVED'], 1]);
    } finally {
      for (const end of ends.reverse()) await end();
    }
  });

  it('stays open when an earlier request may have sent it', async ({ onTestFinished }) => {
    const shop = await openX402Shop(onTestFinished);
    const payment = await paymentForOrder(shop.context);
    answer(shop, { refused: 'insufficient_funds' });
    expect((await refusalOf(orderServer(shop.context, ORDER, payment))).code).toBe('payment_rejected');
    answer(shop, { refused: 'insufficient_funds', unsent: true });
    await eventually(async () => {
      const refused = await refusalOf(orderServer(another(shop.context), ORDER, payment));
      return refused.code === 'payment_rejected';
    });
    await new Promise((resume) => setTimeout(resume, 200));
    expect([await statuses(shop), await tasks(shop)]).toEqual([['OBSERVED'], 1]);
  });
});
