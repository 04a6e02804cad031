/** Debts of payments by x402 whose money was spent before their chain removed them. */
import { existsSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { proveBooks } from '../../../entities/payments/books.ts';
import { ADJUSTMENT, owed, post } from '../../../entities/payments/ledger.ts';
import { PAYMENT_LANE } from '../../../entities/tasks/lane.ts';
import { findBalance } from '../../../resolvers/accounts/account.ts';
import { createTopUp } from '../../../resolvers/payments/billing.ts';
import { deleteServer } from '../../../resolvers/servers/delete.ts';
import { orderServer } from '../../../resolvers/servers/order.ts';
import { FUNDS_MICROS, startWorker } from '../../setup/customer-shop.ts';
import { eventually } from '../../setup/freehold.ts';
import {
  another,
  expireAuthorizations,
  ORDER,
  openX402Shop,
  PRICE,
  paymentFor,
  paymentForOrder,
  refusalOf,
  type X402Shop,
} from './shop.ts';

/** A shop whose chain is not final, and whose worker watches all payments at once. */
async function openUnsafeShop() {
  const shop = await openX402Shop(onTestFinished);
  shop.chain.safe = false;
  const remove = async () => {
    shop.chain.mood = 'silent';
    await expireAuthorizations(shop);
    shop.chain.forget();
    await shop.db.query(`update task set run_at = now() where process = 'x402'`);
    startWorker(shop, onTestFinished);
    await eventually(async () => (await shop.db.query(`select 1 from payment where status = 'REVERSED'`)).length > 0);
    shop.chain.mood = 'settles';
  };
  const topUp = async (dollars: number) => {
    const asked = { amountUsd: BigInt(dollars) * 1_000_000n };
    const payment = await paymentFor(await refusalOf(createTopUp(another(shop.context), asked, { mode: 'X402' })));
    return createTopUp(another(shop.context), asked, payment);
  };
  const balance = () => findBalance(shop.context);
  const isWell = async () => expect(await proveBooks(shop.db)).toMatchObject({ balanced: true, firstFault: null });
  return { ...shop, remove, topUp, balance, isWell };
}

/** Lets the account of a shop owe more than its balance. */
const owe = ({ db, accountId }: Pick<X402Shop, 'db' | 'accountId'>) =>
  db.transaction((tx) =>
    post(tx, accountId, {
      ...{ kind: 'adjustment', debit: owed(accountId), credit: ADJUSTMENT, amountMicros: 50_000_000n },
      ...{ externalKey: 'test', description: 'test' },
    }),
  );

describe('A reversed payment by x402', () => {
  it('takes the bonus of its top-up', async () => {
    const { remove, topUp, balance, isWell } = await openUnsafeShop();
    await topUp(100);
    expect((await balance()).availableMicros).toBe(FUNDS_MICROS + 102_000_000n);
    await remove();
    expect(await balance()).toMatchObject({ availableMicros: FUNDS_MICROS, owedMicros: 0n });
    await isWell();
  });

  it('takes the refund of the server that it paid for', async () => {
    const { remove, balance, isWell, ...shop } = await openUnsafeShop();
    const { server } = await orderServer(shop.context, ORDER, await paymentForOrder(shop.context));
    startWorker(shop, onTestFinished);
    await eventually(async () => (await shop.read(server.orderNumber)).status === 'RUNNING');
    const { refundedMicros } = await deleteServer(shop.context, server.orderNumber);
    expect(await balance()).toMatchObject({ availableMicros: FUNDS_MICROS, pendingMicros: refundedMicros });
    await remove();
    const { availableMicros, pendingMicros } = await balance();
    expect([availableMicros, pendingMicros]).toEqual([FUNDS_MICROS - PRICE + refundedMicros, 0n]);
    await isWell();
  });

  it('leaves a debt for which an order is refused before its payment moves, while a top-up pays it', async () => {
    const { remove, topUp, balance, isWell, ...shop } = await openUnsafeShop();
    await topUp(100);
    await shop.db.query(`update catalog_item set price_month_micros = 110000000 where code = 'vps-2'`);
    await orderServer(another(shop.context), { ...ORDER, serviceCode: 'vps-2' });
    const payment = await paymentForOrder(another(shop.context));
    await remove();
    const { owedMicros } = await balance();
    expect(owedMicros).toBe(90_000_000n);
    const refusal = { code: 'insufficient_balance', message: expect.stringContaining('The account owes 90 USD') };
    await expect(orderServer(another(shop.context), ORDER, payment)).rejects.toMatchObject(refusal);
    await expect(orderServer(another(shop.context), ORDER, { mode: 'X402' })).rejects.toMatchObject(refusal);
    expect(await shop.db.query(`select status from payment order by id`)).toEqual([{ status: 'REVERSED' }]);
    await topUp(200);
    expect(await balance()).toMatchObject({ availableMicros: 114_000_000n, owedMicros: 0n });
    await isWell();
  });

  it('refuses an order before its payment moves, also when an earlier request could not send that payment', async () => {
    const { balance, isWell, ...shop } = await openUnsafeShop();
    const { settle } = shop.chain;
    const payment = await paymentForOrder(shop.context);
    const order = () => refusalOf(orderServer(another(shop.context), ORDER, payment));
    const dropped = () =>
      eventually(async () => (await shop.db.query(`select 1 from payment where status = 'DROPPED'`)).length === 1);
    shop.chain.settle = async () => ({ unsent: true }) as never;
    expect((await order()).code).toBe('unavailable');
    await dropped();
    shop.chain.settle = settle;
    await owe(shop);
    for (let i = 0; i < 2; i++) {
      expect(await order()).toMatchObject({
        ...{ code: 'insufficient_balance', message: expect.stringContaining('The account owes 30 USD') },
      });
      await dropped();
    }
    await shop.db.query(`update account set suspended_at = now(), suspended_for = 'Spam was sent.'`);
    expect((await order()).code).toBe('account_suspended');
    expect(existsSync(shop.chain.folder), 'the chain has moved nothing').toBe(false);
    expect(await balance()).toMatchObject({ availableMicros: 0n, owedMicros: 30_000_000n });
    await isWell();
  });

  it('refuses an order before each further send of its payment', async () => {
    const { isWell, ...shop } = await openUnsafeShop();
    const payment = await paymentForOrder(shop.context);
    let sends = 0;
    shop.chain.settle = async () => ({ txId: `0x${++sends}`, refused: 'insufficient_funds' }) as never;
    const order = () => refusalOf(orderServer(another(shop.context), ORDER, payment));
    expect((await order()).code).toBe('payment_rejected');
    await owe(shop);
    for (let i = 0; i < 2; i++) expect((await order()).code).toBe('insufficient_balance');
    expect(sends).toBe(1);
    const left = 'select from x402_authorization join payment on id = payment_id where sends = 1 and status = $1';
    await eventually(async () => (await shop.db.query(left, ['OBSERVED'])).length === 1);
    await isWell();
  });

  it.each<[string, (shop: Pick<X402Shop, 'db' | 'accountId'>) => Promise<unknown>, number]>([
    ['stands', async () => {}, 2],
    ['is of an account in debt', owe, 1],
    ['has failed', ({ db }) => db.query(`update server set status = 'FAILED'`), 1],
  ])('is sent again by the worker if its order %s', async (_, change, expected) => {
    const { isWell, ...shop } = await openUnsafeShop();
    let sends = 0;
    shop.chain.settle = async () => ({ txId: `0x${++sends}` }) as never;
    const { server } = await orderServer(shop.context, ORDER, await paymentForOrder(shop.context));
    expect(server.status).toBe('PENDING');
    await change(shop);
    await shop.db.query(`update payment set created_at = created_at - interval '20 seconds'`);
    await shop.db.query(`update task set run_at = now() where process = 'x402'`);
    await shop.provisioning.newWorker().drain(PAYMENT_LANE);
    expect(sends).toBe(expected);
    await isWell();
  });
});
