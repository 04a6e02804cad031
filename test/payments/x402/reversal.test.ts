/** Credited x402 payments that a reorganisation reverts. */
import { describe, expect, it } from 'vitest';
import { columnsOf } from '../../../entities/database/table.ts';
import { proveBooks } from '../../../entities/payments/books.ts';
import { ADJUSTMENT, available, post } from '../../../entities/payments/ledger.ts';
import { X402Payment } from '../../../entities/payments/x402-payment.ts';
import { writeOffX402Payment } from '../../../resolvers/payments/x402-payments.ts';
import { orderServer } from '../../../resolvers/servers/order.ts';
import { FUNDS_MICROS, startWorker, traces } from '../../setup/customer-shop.ts';
import { eventually } from '../../setup/freehold.ts';
import type { OnEnd } from '../../setup/spawn.ts';
import {
  another,
  expireAuthorizations,
  ORDER,
  openX402Shop,
  PRICE,
  paymentForOrder,
  refusalOf,
  settleOnChain,
} from './shop.ts';

describe('A credited payment that its chain reverts', () => {
  /** Makes a paid order, and runs a worker that watches its payment. */
  async function paidOrder(onEnd: OnEnd) {
    const shop = await openX402Shop(onEnd);
    shop.chain.safe = false;
    const payment = await paymentForOrder(shop.context);
    const { server } = await orderServer(shop.context, ORDER, payment);
    await shop.db.query(`update task set run_at = now() where process = 'x402'`);
    startWorker(shop, onEnd);
    const find = async () =>
      (await shop.db.query<X402Payment>(`select ${columnsOf(X402Payment)} from x402_payment`))[0]!;
    return { shop, find, orderNumber: server.orderNumber };
  }

  it('is sent again with its signature, at no cost for customer or operator', async ({ onTestFinished }) => {
    const { shop, find, orderNumber } = await paidOrder(onTestFinished);
    shop.chain.forget();
    await eventually(async () => (await shop.chain.observe(await find())).state === 'settled');
    expect((await find()).finalAt).toBeNull();
    shop.chain.safe = true;
    await eventually(async () => (await find()).finalAt !== null);
    expect(await find()).toMatchObject({ status: 'SETTLED', sealedPayment: null, orderNumber });
    expect((await traces(shop, orderNumber)).balance.available).toBe(FUNDS_MICROS);
    expect((await proveBooks(shop.db)).balanced).toBe(true);
  });

  it('still pays for its order if the credit was not spent yet', async ({ onTestFinished }) => {
    const shop = await openX402Shop(onTestFinished);
    shop.chain.safe = false;
    const payment = await paymentForOrder(shop.context);
    shop.chain.mood = 'refuses';
    await refusalOf(orderServer(shop.context, ORDER, payment));
    await settleOnChain(shop);
    startWorker(shop, onTestFinished);
    await eventually(async () => (await traces(shop, '')).balance.available === FUNDS_MICROS + PRICE);
    shop.chain.mood = 'silent';
    shop.chain.forget();
    const { server, paidBy } = await orderServer(another(shop.context), ORDER, payment);
    expect(paidBy).toBe('x402');
    await eventually(async () => (await traces(shop, server.orderNumber)).events.includes('running'));
    expect((await traces(shop, '')).balance).toEqual({ available: FUNDS_MICROS, held: 0n });
  });

  it('is not reversed on the word of another chain that was configured later', async ({ onTestFinished }) => {
    const { shop, find } = await paidOrder(onTestFinished);
    await shop.db.query(`update x402_payment set network = 'eip155:1'`);
    await expireAuthorizations(shop);
    shop.chain.forget();
    await eventually(async () => {
      const [task] = await shop.db.query<{ error: string }>(`select error from task where process = 'x402'`);
      return task?.error?.includes('eip155:1 of 0x036cbd53842c5426634e7929541ec2318f3dcf7e is not configured');
    });
    expect((await find()).status).toBe('SETTLED');
  });

  it('is reversed if it never settles again, which suspends the account, until the operator writes it off', async ({
    onTestFinished,
  }) => {
    const { shop, find, orderNumber } = await paidOrder(onTestFinished);
    const { db, context, accountId } = shop;
    await eventually(async () => (await traces(shop, orderNumber)).balance.held === 0n);
    await db.transaction((tx) =>
      post(tx, accountId, {
        ...{ kind: 'adjustment', debit: available(accountId), credit: ADJUSTMENT, externalKey: 'spent' },
        ...{ amountMicros: FUNDS_MICROS - 1_000_000n, description: 'test' },
      }),
    );
    shop.chain.mood = 'silent';
    await expireAuthorizations(shop);
    shop.chain.forget();
    await eventually(async () => (await find()).status === 'REVERSED');
    const { id, reversedMicros } = await find();
    expect(reversedMicros).toBe(1_000_000n);
    expect((await traces(shop, orderNumber)).balance).toEqual({ available: 0n, held: 0n });
    expect(await db.query('select suspended_at is not null as suspended from account')).toEqual([{ suspended: true }]);
    const totals = async () =>
      Object.fromEntries((await proveBooks(db)).totals.map(({ name, micros }) => [name, micros]));
    expect(await totals()).toMatchObject({ suspense: 1_000_000n, 'gateway:x402:eip155:84532': -PRICE });
    for (let i = 0; i < 2; i++)
      expect((await writeOffX402Payment(context, id, 'It will not come back')).status).toBe('WRITTEN_OFF');
    expect(await totals()).toMatchObject({ suspense: 0n, 'gateway:x402:eip155:84532': 0n });
    expect((await proveBooks(db)).firstFault).toBeNull();
    expect(await db.query('select type from event where subject = $1 order by id', [id])).toEqual([
      { type: 'payment.reversed' },
      { type: 'payment.written_off' },
    ]);
  });
});
