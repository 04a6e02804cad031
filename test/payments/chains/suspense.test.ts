/** The ways of a payment out of suspense, its finality, and transactions that the operator names. */
import { describe, expect, it } from 'vitest';
import { newId } from '../../../entities/ids.ts';
import { proveBooks } from '../../../entities/payments/books.ts';
import { READ_GATEWAY } from '../../../entities/payments/movement.ts';
import type { Payment } from '../../../entities/payments/payment.ts';
import { SimulatedPayments } from '../../../provisioning/payments/drivers/simulated.ts';
import { findTopUp } from '../../../resolvers/payments/billing.ts';
import { assign, creditTransaction, giveBack, writeOff } from '../../../resolvers/payments/payments.ts';
import { cancel, returnInCoin } from '../../../resolvers/payments/payouts.ts';
import { HALF, openSyncedShop } from './synced-shop.ts';

const { shop, chain, sync, open, suspense, total } = await openSyncedShop();
const { db } = shop;

const paymentOf = async (orderNumber: string): Promise<Payment> =>
  (await db.query<Payment>('select * from payment where order_number = $1', [orderNumber]))[0]!;
const read = async (id: string): Promise<Payment> =>
  (await db.query<Payment>('select * from payment where id = $1', [id]))[0]!;
const balanced = async () => expect((await proveBooks(db)).firstFault).toBeNull();

/** Pays another coin to a new top-up. */
async function unmatched() {
  const [context, topUp] = await open();
  chain.pay(topUp.walletAddress!, 7_00000000n, { coin: 'OTHER' });
  chain.mine(2);
  await sync();
  const { id } = await paymentOf(topUp.orderNumber);
  return { context, topUp, id };
}

describe('An unmatched payment', () => {
  it('below a dollar asks nothing of the operator, and its coins stay in the books, also after a reorganisation', async () => {
    const news = () => db.query(`select id from event where type = 'payment.unmatched'`);
    const [before, inSuspense] = [(await news()).length, await suspense()];
    const [, { orderNumber, walletAddress }] = await open();
    const units = async () =>
      (await READ_GATEWAY.all(db, ['gateway:testnet'])).find(({ coin }) => coin === 'OTHER')?.units ?? '0';
    const held = await units();
    chain.pay(walletAddress!, 99_999_999n, { coin: 'OTHER' });
    chain.mine(2);
    await sync();
    expect(await paymentOf(orderNumber)).toMatchObject({ status: 'WRITTEN_OFF', creditedMicros: 0n });
    expect([await units(), await suspense()]).toEqual([String(BigInt(held) + 99_999_999n), inSuspense]);
    chain.reorganise(2);
    await sync();
    chain.mine(3);
    await sync();
    expect([await units(), await suspense()]).toEqual([String(BigInt(held) + 99_999_999n), inSuspense]);
    expect((await news()).length).toBe(before);
    await balanced();
  });

  it('goes to the account that the operator names, and leaves it again when the chain removes the payment', async () => {
    const { context, topUp, id } = await unmatched();
    const other = await shop.account(0n);
    const unknown = { accountId: newId('acct'), reason: 'No' };
    await expect(assign(context, id, unknown)).rejects.toMatchObject({ code: 'not_found' });
    for (let i = 0; i < 2; i++) {
      const assigned = await assign(context, id, { accountId: other, reason: 'She owns both' });
      expect(assigned).toMatchObject({ status: 'ASSIGNED', accountId: other, orderNumber: null });
    }
    const elsewhere = assign(context, id, { accountId: topUp.accountId, reason: 'Back again' });
    await expect(elsewhere).rejects.toMatchObject({ code: 'validation_failed' });
    expect([await shop.balance(other), await shop.balance(topUp.accountId)]).toEqual([7_000_000n, 0n]);
    const lost = chain.blocks.slice(-2).flatMap(({ payments }) => payments);
    chain.reorganise(2, { lost: true });
    chain.mine(3);
    await sync();
    expect([(await read(id)).status, await shop.balance(other)]).toEqual(['REVERSED', 0n]);
    chain.pool = lost;
    chain.mine(2);
    await sync();
    expect([(await read(id)).status, await shop.balance(other)]).toEqual(['CREDITED', 7_000_000n]);
    await balanced();
  });

  it('is sent back only when the chain cannot remove it any more', async () => {
    const { context, id } = await unmatched();
    const refusal = { code: 'validation_failed', message: expect.stringContaining('The chain can still remove') };
    const back = () => giveBack(context, id, { returnTxId: 'back', reason: 'By mistake' });
    const payout = { paymentId: id, key: id, address: 'elsewhere', reason: 'By mistake' };
    await expect(back()).rejects.toMatchObject(refusal);
    await expect(returnInCoin(context, payout)).rejects.toMatchObject(refusal);
    chain.mine(99);
    await sync();
    expect((await read(id)).finalAt).toEqual(expect.any(Date));
    const { id: payoutId } = await returnInCoin(context, payout);
    await balanced();
    await cancel(context, payoutId, 'By hand');
    expect((await back()).status).toBe('RETURNED');
    await balanced();
  });

  it('leaves the books with the transaction that sent it back, once', async () => {
    const { context, id } = await unmatched();
    chain.mine(100);
    await sync();
    const [suspended, came] = [await suspense(), await total('gateway:testnet')];
    const sent = { returnTxId: 'back', reason: 'By mistake' };
    for (let i = 0; i < 2; i++) expect((await giveBack(context, id, sent)).status).toBe('RETURNED');
    expect([await suspense(), await total('gateway:testnet')]).toEqual([suspended - 7_000_000n, came + 7_000_000n]);
    for (const decision of [
      () => giveBack(context, id, { ...sent, returnTxId: 'twice' }),
      () => assign(context, id, { reason: 'No' }),
      () => writeOff(context, id, 'No'),
    ])
      await expect(decision()).rejects.toMatchObject({ code: 'validation_failed' });
    expect(await shop.events(id)).toEqual(['payment.unmatched', 'payment.returned']);
    await balanced();
  });

  it('is not returned or assigned once the chain has removed it, but can be written off until it comes again', async () => {
    const { context, topUp, id } = await unmatched();
    const blocks = structuredClone(chain.blocks.slice(-2));
    chain.reorganise(2, { lost: true });
    chain.mine(3);
    await sync();
    for (const decision of [
      () => giveBack(context, id, { returnTxId: 'back', reason: 'No' }),
      () => assign(context, id, { reason: 'No' }),
    ])
      await expect(decision()).rejects.toMatchObject({ message: 'The chain has removed the payment.' });
    const before = await suspense();
    const lost = blocks.flatMap(({ payments }) => payments);
    for (let i = 0; i < 2; i++) {
      expect((await writeOff(context, id, 'Spent twice')).status).toBe('WRITTEN_OFF');
      expect(await suspense()).toBe(before - 7_000_000n);
      await balanced();
      chain.pool = lost;
      chain.mine(3);
      await sync();
      expect(await read(id)).toMatchObject({ status: 'UNMATCHED', missingSince: null });
      expect(await suspense()).toBe(before);
      await balanced();
      chain.reorganise(3, { lost: true });
      chain.mine(4);
      await sync();
    }
    chain.pool = lost;
    chain.mine(3);
    await sync();
    expect((await assign(context, id, { reason: 'Hers after all' })).status).toBe('ASSIGNED');
    expect(await shop.balance(topUp.accountId)).toBe(7_000_000n);
    await balanced();
  });

  it('stays written off if the chain mines it in another block later', async () => {
    const { context, id } = await unmatched();
    await writeOff(context, id, 'Dust');
    chain.reorganise(2);
    chain.mine(3);
    await sync();
    expect(await read(id)).toMatchObject({ status: 'WRITTEN_OFF', blockHash: expect.any(String) });
    await balanced();
  });
});

describe('A credited payment', () => {
  it('is final once its block is deep enough, and never reversed: a chain without that block stops', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    chain.pay(walletAddress!, HALF);
    chain.mine(100);
    await sync();
    const { id, status } = await paymentOf(orderNumber);
    expect(status).toBe('CREDITED');
    chain.mine(1);
    await sync();
    const final = await read(id);
    expect([final.status, final.finalAt]).toEqual(['FINAL', expect.any(Date)]);
    const { blocks } = chain;
    chain.blocks = [...blocks];
    chain.reorganise(101, { lost: true });
    chain.mine(103);
    for (let looks = 0; looks < 2; looks++) await sync();
    expect([(await read(id)).status, await shop.balance(accountId)]).toEqual(['FINAL', 50_000_000n]);
    expect((await read(id)).blockHash).toMatch(/^[0-9a-f]{64}$/);
    const warning = async () => (await shop.provisioning.payments.gateways(db, context.signal))[0]!.warning;
    expect(await warning()).toMatch(
      /^testnet is another chain than before: the node lacks the final block \d+, \w{64}\.$/,
    );
    expect(await shop.events('testnet')).toEqual(['gateway.warned']);
    chain.blocks = blocks;
    chain.mine(1);
    await sync();
    expect([await warning(), (await read(id)).status]).toEqual([null, 'FINAL']);
  });

  it('is final when the chain says so, although it is not deep', async ({ onTestFinished }) => {
    const [, { orderNumber, walletAddress }] = await open();
    chain.pay(walletAddress!, HALF);
    chain.mine(2);
    await sync();
    Object.assign(chain, { finalHeight: async () => chain.blocks.length - 1 });
    onTestFinished(() => void Reflect.deleteProperty(chain, 'finalHeight'));
    await sync();
    expect((await paymentOf(orderNumber)).status).toBe('FINAL');
  });
});

describe('A transaction that the operator names', () => {
  const REASON = 'She sent it again';

  it('is credited at the rate of the moment if the service read its block before it knew the address', async () => {
    const [{ next } = { next: 0 }] = await db.query<{ next: number }>('select next from deposit');
    const { txId } = chain.pay(`address-${next}`, HALF);
    chain.mine(3);
    await sync();
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    expect(walletAddress).toBe(`address-${next}`);
    await db.query(`update top_up set expires_at = now() - interval '1 day' where order_number = $1`, [orderNumber]);
    await sync();
    expect(await shop.balance(accountId)).toBe(0n);
    for (let i = 0; i < 2; i++) {
      const found = await creditTransaction(context, { network: 'testnet', txId: txId.toUpperCase(), reason: REASON });
      expect(found).toMatchObject([{ orderNumber, txId, units: String(HALF) }]);
      await sync();
    }
    expect(await shop.balance(accountId)).toBe(50_000_000n);
    expect(await findTopUp(context, orderNumber)).toMatchObject({ status: 'CONFIRMED', paymentException: 'LATE' });
    await balanced();
  });

  it('is refused if no block has it, if it pays no top-up, or if the driver cannot look it up', async () => {
    const [context] = await open();
    const { txId } = chain.pay('somebody else', HALF);
    chain.mine(1);
    await sync();
    const refusal = (network: string, named: string) =>
      creditTransaction(context, { network, txId: named, reason: REASON }).catch(({ code, extras }) => [
        code,
        extras.errors[0].field,
      ]);
    expect(await refusal('testnet', 'unknown')).toEqual(['validation_failed', 'txId']);
    expect(await refusal('testnet', txId)).toEqual(['validation_failed', 'txId']);
    expect(await refusal('bitcoin', txId)).toEqual(['validation_failed', 'network']);
    expect(new SimulatedPayments({ confirmSeconds: 0 })).not.toHaveProperty('chains');
  });

  it('waits until the service has read its block', async () => {
    const [context, { walletAddress }] = await open();
    await sync();
    const { txId } = chain.pay(walletAddress!, HALF);
    chain.mine(1);
    const named = creditTransaction(context, { network: 'testnet', txId, reason: REASON });
    await expect(named).rejects.toMatchObject({ code: 'unavailable' });
  });
});
