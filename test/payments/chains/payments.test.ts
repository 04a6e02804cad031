/** Payments on a synced chain: each is credited once, at the right exchange rate, through every reorganisation. */
import { describe, expect, it } from 'vitest';
import { cancelTopUp, findTopUp } from '../../../resolvers/payments/billing.ts';
import { HALF, openSyncedShop } from './synced-shop.ts';

const { shop, chain, driver, sync, open } = await openSyncedShop();

/** Lets the half hour of a top-up pass. */
const expire = async (orderNumber: string) => {
  await shop.db.query(
    `update top_up set expires_at = now() - interval '1 minute', created_at = now() - interval '1 hour' where order_number = $1`,
    [orderNumber],
  );
  await shop.db.query(`update payment set seen_at = now() - interval '1 hour' where order_number = $1`, [orderNumber]);
  await shop.db.query('update task set run_at = now() where subject = $1', [orderNumber]);
  await shop.provisioning.newWorker().drain('payments');
  await sync();
};
describe('A payment', () => {
  it('is shown once it is announced, and credited after its confirmations', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    const { txId } = chain.pay(walletAddress!, HALF);
    await sync();
    expect(await findTopUp(context, orderNumber)).toMatchObject({
      ...{ status: 'CONFIRMING', receivedCrypto: '0.5', confirmations: 0, txIds: [txId], paymentException: null },
    });
    chain.mine();
    await sync();
    expect(await findTopUp(context, orderNumber)).toMatchObject({ status: 'CONFIRMING', confirmations: 1 });
    expect(await shop.balance(accountId)).toBe(0n);
    chain.mine();
    await sync();
    expect(await findTopUp(context, orderNumber)).toMatchObject({
      ...{ status: 'CONFIRMED', confirmations: 2, creditedMicros: 50_000_000n },
    });
    expect(await shop.balance(accountId)).toBe(50_000_000n);
    expect(await shop.events(orderNumber)).toEqual(['topup.created', 'topup.confirming', 'topup.confirmed']);
  });

  it('is credited once, although two workers see it mined in several blocks', async () => {
    const [, { accountId, walletAddress }] = await open();
    chain.pay(walletAddress!, HALF);
    for (let i = 0; i < 5; i++) {
      chain.mine();
      await Promise.all([sync(), sync()]);
      chain.reorganise(1);
      await sync();
      expect(await shop.balance(accountId)).toBe(0n);
    }
    chain.mine(3);
    await Promise.all([sync(), sync(), sync()]);
    await sync();
    expect(await shop.balance(accountId)).toBe(50_000_000n);
  });

  it('leaves the top-up to expire if it vanishes before its credit', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    chain.pay(walletAddress!, HALF);
    chain.mine();
    await sync();
    chain.reorganise(1, { lost: true });
    chain.mine(3);
    await sync();
    expect(await findTopUp(context, orderNumber)).toMatchObject({ status: 'CONFIRMING', txIds: [] });
    await expire(orderNumber);
    expect(await findTopUp(context, orderNumber)).toMatchObject({ status: 'EXPIRED', receivedCrypto: '0' });
    expect(await shop.balance(accountId)).toBe(0n);
  });

  it('gets the quoted rate if it came in time, even if it is noticed later', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    driver.coinList[0]!.fixedRateMicros = 10_000_000n;
    const at = new Date();
    chain.pay(walletAddress!, HALF);
    await shop.db.query(
      `update top_up set status = 'EXPIRED', expires_at = now() + interval '1 second' where order_number = $1`,
      [orderNumber],
    );
    chain.mine(1, at);
    chain.mine(1);
    await sync();
    expect(await findTopUp(context, orderNumber)).toMatchObject({ status: 'CONFIRMED', paymentException: null });
    expect(await shop.balance(accountId)).toBe(50_000_000n);
  });

  it('gets the current rate if it comes late', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    await expire(orderNumber);
    expect((await findTopUp(context, orderNumber)).status).toBe('EXPIRED');
    driver.coinList[0]!.fixedRateMicros = 120_000_000n;
    chain.pay(walletAddress!, HALF);
    chain.mine(2);
    await sync();
    expect(await findTopUp(context, orderNumber)).toMatchObject({
      ...{ status: 'CONFIRMED', paymentException: 'LATE', creditedMicros: 60_000_000n },
    });
    expect(await shop.balance(accountId)).toBe(60_000_000n);
  });

  it('waits while the coin has no exchange rate, and is credited afterwards', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    await expire(orderNumber);
    delete driver.coinList[0]!.fixedRateMicros;
    chain.pay(walletAddress!, HALF);
    chain.mine(3);
    await sync();
    expect(await findTopUp(context, orderNumber)).toMatchObject({ status: 'CONFIRMING', confirmations: 2 });
    await expect(open()).rejects.toMatchObject({ code: 'coin_unavailable' });
    driver.coinList[0]!.fixedRateMicros = 100_000_000n;
    await sync();
    expect(await shop.balance(accountId)).toBe(50_000_000n);
  });
});

describe('A top-up', () => {
  it('credits each part of its payment, and is confirmed with the last part', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    chain.pay(walletAddress!, HALF / 2n);
    chain.mine(2);
    await sync();
    expect(await findTopUp(context, orderNumber)).toMatchObject({ status: 'CONFIRMING', receivedCrypto: '0.25' });
    expect(await shop.balance(accountId)).toBe(25_000_000n);
    chain.pay(walletAddress!, HALF / 2n);
    chain.mine(2);
    await sync();
    expect(await findTopUp(context, orderNumber)).toMatchObject({ status: 'CONFIRMED', paymentException: null });
    expect(await shop.balance(accountId)).toBe(50_000_000n);
  });

  it('is confirmed with a partial payment when it expires, with the bonus for that part', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open(1_000_000_000n);
    chain.pay(walletAddress!, HALF * 4n);
    chain.mine(2);
    await sync();
    expect((await findTopUp(context, orderNumber)).status).toBe('CONFIRMING');
    await expire(orderNumber);
    expect(await findTopUp(context, orderNumber)).toMatchObject({
      ...{ status: 'CONFIRMED', paymentException: 'UNDERPAID', bonusMicros: 4_000_000n, creditedMicros: 204_000_000n },
    });
    expect(await shop.balance(accountId)).toBe(204_000_000n);
  });

  it('is credited in full if it was paid too much, with the excess at the lower rate and without bonus', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open(100_000_000n);
    driver.coinList[0]!.fixedRateMicros = 50_000_000n;
    chain.pay(walletAddress!, HALF * 4n);
    chain.mine(2);
    await sync();
    expect(await findTopUp(context, orderNumber)).toMatchObject({ status: 'CONFIRMED', paymentException: 'OVERPAID' });
    expect(await shop.balance(accountId)).toBe(100_000_000n + 50_000_000n + 2_000_000n);
  });

  it('stays confirmed, and credits later payments to its address', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    for (let i = 0; i < 2; i++) {
      chain.pay(walletAddress!, HALF);
      chain.mine(2);
      await sync();
    }
    expect(await findTopUp(context, orderNumber)).toMatchObject({
      ...{ status: 'CONFIRMED', paymentException: 'OVERPAID', receivedCrypto: '1', creditedMicros: 100_000_000n },
    });
    expect(await shop.balance(accountId)).toBe(100_000_000n);
    expect(await shop.events(orderNumber)).toHaveLength(3);
  });

  it('loses no payment that arrives during its cancellation', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    chain.pay(walletAddress!, HALF);
    await Promise.allSettled([sync(), cancelTopUp(context, orderNumber)]);
    chain.mine(2);
    await sync();
    expect((await findTopUp(context, orderNumber)).status).toBe('CONFIRMED');
    expect(await shop.balance(accountId)).toBe(50_000_000n);
  });
});
