/** Limits of open x402 payments, and payments that the service closes at once. */
import { describe, expect, it } from 'vitest';
import { proveBooks } from '../../../entities/payments/books.ts';
import { READ_GATEWAY } from '../../../entities/payments/movement.ts';
import { digest } from '../../../entities/secrets.ts';
import type { Settling } from '../../../provisioning/payments/drivers/x402/driver.ts';
import { decodePayment } from '../../../provisioning/payments/x402/message.ts';
import { createTopUp } from '../../../resolvers/payments/billing.ts';
import type { PaymentHeaders } from '../../../resolvers/payments/sale.ts';
import { orderServer } from '../../../resolvers/servers/order.ts';
import { FUNDS_MICROS, startWorker, traces } from '../../setup/customer-shop.ts';
import { eventually } from '../../setup/freehold.ts';
import type { OnEnd } from '../../setup/spawn.ts';
import { newPayer } from './clients.ts';
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
  type X402Shop,
} from './shop.ts';

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

describe('A dropped payment that its payer submits to the chain', () => {
  const keyDigest = digest('key');
  /** Drops an unsent payment. A worker has looked at it since. */
  async function droppedPayment(onEnd: OnEnd) {
    const shop = await openX402Shop(onEnd);
    const context = { ...shop.context, keyDigest };
    const payment = await paymentForOrder(context);
    const { settle } = shop.chain;
    shop.chain.settle = async () => ({ unsent: true }) as never;
    expect((await refusalOf(orderServer(context, ORDER, payment))).code).toBe('unavailable');
    await eventually(async () => (await statuses(shop)).join() === 'DROPPED');
    shop.chain.settle = settle;
    await shop.db.query(`update task set run_at = now() where process = 'x402'`);
    const worker = shop.provisioning.newWorker();
    await worker.drain('payments');
    const submit = async () => shop.chain.settle((await decodePayment(payment.signature!)).authorization);
    const order = (headers: PaymentHeaders = payment) =>
      orderServer({ ...another(shop.context), keyDigest }, ORDER, headers);
    return { shop, submit, order, worker };
  }
  const inBalance = async (shop: X402Shop) => (await traces(shop, '')).balance.available - FUNDS_MICROS;

  it('pays when the request comes again, and is watched until it is final', async ({ onTestFinished }) => {
    const { shop, submit, order } = await droppedPayment(onTestFinished);
    await submit();
    // The limit counts payments with an open outcome, and this one has settled.
    shop.chain.mood = 'silent';
    const { limits } = shop.context;
    for (let i = 0; i < limits.openPayments; i++)
      await orderServer(another(shop.context), ORDER, await paymentForOrder(shop.context));
    const { server, paidBy } = await order();
    expect([paidBy, server.status, await statuses(shop)]).toMatchObject(['x402', 'PENDING', { 0: 'CREDITED' }]);
    expect(await tasks(shop)).toBe(1 + limits.openPayments);
    await shop.db.query(`update task set run_at = now() where process = 'x402'`);
    startWorker(shop, onTestFinished);
    await eventually(async () => (await statuses(shop))[0] === 'FINAL');
  });

  it('is reversed when a reorganisation removes it for good', async ({ onTestFinished }) => {
    const { shop, submit, order } = await droppedPayment(onTestFinished);
    await submit();
    shop.chain.safe = false;
    await order();
    shop.chain.mood = 'silent';
    shop.chain.forget();
    await expireAuthorizations(shop);
    await shop.db.query(`update task set run_at = now() where process = 'x402'`);
    startWorker(shop, onTestFinished);
    await eventually(async () => (await statuses(shop)).join() === 'REVERSED');
    expect((await proveBooks(shop.db)).firstFault).toBeNull();
  });

  it('goes to the balance, as the refusal of its sale says', async ({ onTestFinished }) => {
    const { shop, submit, order } = await droppedPayment(onTestFinished);
    await submit();
    await shop.db.query(`update catalog_item set offered = false where code = 'vps-1'`);
    expect((await refusalOf(order())).message).toContain('6 USD go to the balance');
    await reconcile(shop, 'FINAL');
    expect(await inBalance(shop)).toBe(PRICE);
  });

  it('goes to the balance by itself when no request comes again', async ({ onTestFinished }) => {
    const { shop, submit, worker } = await droppedPayment(onTestFinished);
    await submit();
    const [due] = await shop.db.query(
      'select run_at >= valid_before as late from task join x402_authorization on payment_id = subject',
    );
    expect(due).toEqual({ late: true });
    await shop.db.query(`update task set run_at = now() where process = 'x402'`);
    await worker.drain('payments');
    expect([await inBalance(shop), await statuses(shop)]).toEqual([PRICE, ['FINAL']]);
    expect((await proveBooks(shop.db)).firstFault).toBeNull();
  });

  it('goes to the balance without an order while another payment has its idempotency key', async ({
    onTestFinished,
  }) => {
    const { shop, submit, order } = await droppedPayment(onTestFinished);
    await submit();
    const second = await paymentForOrder(shop.context);
    const observe = shop.chain.observe.bind(shop.chain);
    shop.chain.observe = async (key) => {
      Reflect.deleteProperty(shop.chain, 'observe');
      await order(second);
      return observe(key);
    };
    const refused = await refusalOf(order());
    expect([refused.code, refused.message]).toEqual([
      'idempotency_in_progress',
      expect.stringContaining('6 USD go to the balance'),
    ]);
    await shop.db.query(`update task set run_at = now() where process = 'x402'`);
    startWorker(shop, onTestFinished);
    await eventually(async () => (await statuses(shop)).join() === 'FINAL,FINAL');
    expect(await inBalance(shop)).toBe(PRICE);
    const [server] = await shop.db.query<{ orderNumber: string }>('select order_number from server');
    const next = await refusalOf(order(await paymentForOrder(shop.context)));
    expect([next.code, next.message]).toEqual([
      'payment_nonce_used',
      expect.stringContaining(`was for ${server!.orderNumber}`),
    ]);
  });

  it('is watched no more when the chain can never move it', async ({ onTestFinished }) => {
    const { shop, worker } = await droppedPayment(onTestFinished);
    const coming = async () => (await READ_GATEWAY.first(shop.db, ['gateway:x402:eip155:84532']))?.incoming;
    expect([await tasks(shop), await coming()]).toEqual([1, String(PRICE)]);
    await expireAuthorizations(shop);
    await shop.db.query(`update task set run_at = now() where process = 'x402'`);
    await worker.drain('payments');
    expect([await statuses(shop), await tasks(shop), await coming()]).toEqual([['DROPPED'], 0, undefined]);
  });
});
