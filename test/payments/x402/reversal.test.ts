/** Credited x402 payments that a reorganisation reverts. */
import { describe, expect, it } from 'vitest';
import { columnsOf } from '../../../entities/database/table.ts';
import { proveBooks } from '../../../entities/payments/books.ts';
import { ADJUSTMENT, available, post } from '../../../entities/payments/ledger.ts';
import { FIND_HOLDING } from '../../../entities/payments/movement.ts';
import { Payment } from '../../../entities/payments/payment.ts';
import { X402Authorization, type X402Payment } from '../../../entities/payments/x402-authorization.ts';
import { decodePayment } from '../../../provisioning/payments/x402/message.ts';
import { accountOf } from '../../../resolvers/context.ts';
import { createTopUp, findTopUp } from '../../../resolvers/payments/billing.ts';
import { assign, giveBack, writeOff } from '../../../resolvers/payments/payments.ts';
import { cancel, refundInCoin } from '../../../resolvers/payments/payouts.ts';
import { receiptOfTopUp } from '../../../resolvers/payments/receipts.ts';
import { orderServer } from '../../../resolvers/servers/order.ts';
import { FUNDS_MICROS, startWorker, traces } from '../../setup/customer-shop.ts';
import { asOwner } from '../../setup/database.ts';
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
  settleOnChain,
  type X402Shop,
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
      (
        await shop.db.query<X402Payment>(
          `select ${columnsOf(Payment)}, ${columnsOf(X402Authorization)} from payment join x402_authorization on payment_id = id`,
        )
      )[0]!;
    return { shop, find, orderNumber: server.orderNumber };
  }

  it('is sent again with its signature, at no cost for customer or operator', async ({ onTestFinished }) => {
    const { shop, find, orderNumber } = await paidOrder(onTestFinished);
    shop.chain.forget();
    const settlement = async () => {
      const { address: payTo, units, ...payment } = await find();
      return shop.chain.observe({ ...payment, payTo, amountMicros: BigInt(units) });
    };
    await eventually(async () => (await settlement()).state === 'settled');
    expect((await find()).finalAt).toBeNull();
    shop.chain.safe = true;
    await eventually(async () => (await find()).finalAt !== null);
    expect(await find()).toMatchObject({ status: 'FINAL', sealedPayment: null, orderNumber });
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
    await shop.db.query(`update payment set network = 'eip155:1'`);
    await expireAuthorizations(shop);
    shop.chain.forget();
    await eventually(async () => {
      const [task] = await shop.db.query<{ error: string }>(`select error from task where process = 'x402'`);
      return task?.error?.includes('eip155:1 of 0x036cbd53842c5426634e7929541ec2318f3dcf7e is not configured');
    });
    expect((await find()).status).toBe('CREDITED');
  });

  it('is reversed if it never settles again, and the account still owes it after the operator has written it off', async ({
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
    const { id } = await find();
    expect((await traces(shop, orderNumber)).balance).toEqual({ available: 0n, held: 0n });
    const debt = () =>
      db.query(
        'select owed_micros as micros, suspended_at from balance join account on id = account_id where id = $1',
        [accountId],
      );
    expect(await debt()).toEqual([{ micros: PRICE - 1_000_000n, suspendedAt: null }]);
    const totals = async () =>
      Object.fromEntries((await proveBooks(db)).totals.map(({ name, micros }) => [name, micros]));
    expect(await totals()).toMatchObject({ suspense: PRICE, 'gateway:x402:eip155:84532': -PRICE });
    for (let i = 0; i < 2; i++)
      expect((await writeOff(context, id, 'It will not come back')).status).toBe('WRITTEN_OFF');
    expect(await totals()).toMatchObject({
      ...{ suspense: 0n, owed: 1_000_000n - PRICE, 'gateway:x402:eip155:84532': 0n },
    });
    expect(await debt()).toEqual([{ micros: PRICE - 1_000_000n, suspendedAt: null }]);
    expect((await proveBooks(db)).firstFault).toBeNull();
    expect(await db.query('select type from event where subject = $1 order by id', [id])).toEqual([
      { type: 'payment.reversed' },
      { type: 'payment.written_off' },
    ]);
  });
});

it('A top-up shows its credited sum without a payment that its chain reverts', async ({ onTestFinished }) => {
  const shop = await openX402Shop(onTestFinished);
  shop.chain.safe = false;
  const amount = { amountUsd: 100_000_000n };
  const challenge = await refusalOf(createTopUp(shop.context, amount, { mode: 'X402' }));
  const { orderNumber, creditedMicros } = await createTopUp(shop.context, amount, await paymentFor(challenge));
  expect(creditedMicros).toBe(102_000_000n);
  shop.chain.mood = 'silent';
  shop.chain.forget();
  await expireAuthorizations(shop);
  await shop.db.query(`update task set run_at = now() where process = 'x402'`);
  startWorker(shop, onTestFinished);
  await eventually(async () => (await findTopUp(shop.context, orderNumber)).creditedMicros === 0n);
  expect((await receiptOfTopUp(shop.context, orderNumber)).totalMicros).toBe(0n);
  expect((await proveBooks(shop.db)).firstFault).toBeNull();
});

const AMOUNT = { amountUsd: 100_000_000n };
/** Pays for a top-up on the chain alone, so that the money comes before the top-up. */
async function paidBefore(shop: X402Shop) {
  const payment = await paymentFor(await refusalOf(createTopUp(shop.context, AMOUNT, { mode: 'X402' })));
  shop.chain.mood = 'refuses';
  await refusalOf(createTopUp(shop.context, AMOUNT, payment));
  await settleOnChain(shop);
  return payment;
}

it('A top-up whose payment was in the balance before it has a receipt with that payment', async ({
  onTestFinished,
}) => {
  const shop = await openX402Shop(onTestFinished);
  const payment = await paidBefore(shop);
  await shop.db.query(`update task set run_at = now() where process = 'x402'`);
  startWorker(shop, onTestFinished);
  await eventually(async () => (await traces(shop, '')).balance.available === FUNDS_MICROS + AMOUNT.amountUsd);
  const { orderNumber, status } = await createTopUp(another(shop.context), AMOUNT, payment);
  expect(status).toBe('CONFIRMED');
  const { totalMicros, lines } = await receiptOfTopUp(shop.context, orderNumber);
  expect(totalMicros).toBe(102_000_000n);
  expect(lines).toMatchObject([
    { orderNumber, coin: 'USDC-BASE', amountCrypto: '100', txId: expect.any(String) },
    { orderNumber, coin: null },
  ]);
});

it('A top-up earns no bonus for the part of its payment that left by a payout before', async ({ onTestFinished }) => {
  const shop = await openX402Shop(onTestFinished);
  const payment = await paidBefore(shop);
  await reconcile(shop, 'FINAL');
  const { balance } = await traces(shop, '');
  const payout = {
    coin: 'USDC-BASE',
    key: 'all',
    address: newPayer().address,
    source: 'wallet:base',
    reason: 'Leaves',
  };
  const all = { ...payout, accountId: accountOf(shop.context), amountUsd: balance.available };
  const { id } = await refundInCoin(shop.context, all);
  const { bonusMicros, reversedBonusMicros, creditedMicros } = await createTopUp(
    another(shop.context),
    AMOUNT,
    payment,
  );
  expect([bonusMicros, reversedBonusMicros, creditedMicros]).toEqual([2_000_000n, 2_000_000n, 100_000_000n]);
  expect((await traces(shop, '')).balance.available).toBe(0n);
  await cancel(shop.context, id, 'Stays');
  expect((await traces(shop, '')).balance.available).toBe(balance.available + 2_000_000n);
  expect((await proveBooks(shop.db)).firstFault).toBeNull();
});

it('Only a fault of the chain counts as one when a payment goes into suspense', async ({ onTestFinished }) => {
  const shop = await openX402Shop(onTestFinished);
  const payment = await paymentForOrder(shop.context);
  await shop.chain.settle((await decodePayment(payment.signature!)).authorization);
  shop.chain.verify = async () => 'invalid_exact_evm_nonce_already_used';
  const order = () => refusalOf(orderServer(another(shop.context), ORDER, payment));
  await asOwner(shop.db, `alter table payment add constraint broken check (status <> 'UNMATCHED')`);
  expect((await order()).message).toContain('broken');
  shop.chain.observe = () => Promise.reject(new Error('away'));
  expect((await order()).message).toContain('cannot verify payments at the moment');
});

it('A payment in suspense goes back only when its block is safe', async ({ onTestFinished }) => {
  const shop = await openX402Shop(onTestFinished);
  shop.chain.safe = false;
  const payment = await paymentForOrder(shop.context);
  const { authorization } = await decodePayment(payment.signature!);
  await shop.chain.settle(authorization);
  shop.chain.verify = async () => 'invalid_exact_evm_nonce_already_used';
  expect((await refusalOf(orderServer(shop.context, ORDER, payment))).code).toBe('payment_nonce_used');
  const [{ id }] = (await shop.db.query<{ id: string }>('select id from payment')) as [{ id: string }];
  const back = () => giveBack(shop.context, id, { returnTxId: '0xback', reason: 'By mistake' });
  expect((await refusalOf(back())).message).toContain('The chain can still remove');
  shop.chain.safe = true;
  expect((await back()).status).toBe('RETURNED');
  expect((await proveBooks(shop.db)).firstFault).toBeNull();
});

it('A payment in suspense that its chain has removed leaves the gateway when the operator writes it off', async ({
  onTestFinished,
}) => {
  const shop = await openX402Shop(onTestFinished);
  shop.chain.safe = false;
  const payment = await paymentForOrder(shop.context);
  await shop.chain.settle((await decodePayment(payment.signature!)).authorization);
  shop.chain.verify = async () => 'invalid_exact_evm_nonce_already_used';
  await refusalOf(orderServer(shop.context, ORDER, payment));
  const [{ id }] = (await shop.db.query<{ id: string }>('select id from payment')) as [{ id: string }];
  const off = () => writeOff(shop.context, id, 'Removed');
  expect((await refusalOf(off())).message).toContain('The chain can still remove');
  shop.chain.forget();
  expect((await refusalOf(off())).message).toContain('The chain can still remove');
  await expireAuthorizations(shop);
  for (let i = 0; i < 2; i++) expect((await off()).status).toBe('WRITTEN_OFF');
  const holding = await FIND_HOLDING.first(shop.db, ['gateway:x402:eip155:84532', 'USDC-BASE']);
  expect(holding?.units ?? '0').toBe('0');
  expect((await proveBooks(shop.db)).firstFault).toBeNull();
});

it('A payment that another operator assigns while its chain is asked is not written off', async ({
  onTestFinished,
}) => {
  const shop = await openX402Shop(onTestFinished);
  const payment = await paymentForOrder(shop.context);
  await shop.chain.settle((await decodePayment(payment.signature!)).authorization);
  shop.chain.verify = async () => 'invalid_exact_evm_nonce_already_used';
  await refusalOf(orderServer(shop.context, ORDER, payment));
  const [{ id }] = (await shop.db.query<{ id: string }>('select id from payment')) as [{ id: string }];
  const observe = shop.chain.observe.bind(shop.chain);
  shop.chain.observe = async (signed) => {
    shop.chain.observe = observe;
    const settlement = await observe(signed);
    await assign(shop.context, id, { accountId: shop.accountId, reason: 'Hers' });
    await reconcile(shop, 'FINAL');
    return settlement;
  };
  const refused = await refusalOf(writeOff(shop.context, id, 'A node lied', 'UNMATCHED'));
  expect(refused.message).toBe('The payment is FINAL meanwhile. Look at it again.');
  expect((await proveBooks(shop.db)).firstFault).toBeNull();
});
