/** One payment or top-up that cannot be settled, beside others. The operator reads its name in the health of the gateway. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { findTopUp } from '../../../resolvers/payments/billing.ts';
import { asOwner } from '../../setup/database.ts';
import { HALF, openSyncedShop } from './synced-shop.ts';

const { shop, chain, sync, open } = await openSyncedShop();
const { db } = shop;

const warnings = async () => {
  const { signal } = new AbortController();
  return (await shop.provisioning.payments.gateways(db, signal)).map(({ warning }) => warning);
};
const statusesOf = async (...accountIds: string[]) => {
  const rows = await db.query<{ accountId: string; status: string }>(
    'select account_id, status from payment where account_id = any($1)',
    [accountIds],
  );
  return accountIds.map((wanted) => rows.find(({ accountId }) => accountId === wanted)?.status);
};

describe('A chain', () => {
  it('goes on with all other top-ups while one cannot be settled, and names that one', async () => {
    const [[context, broken], [, sound], [, next]] = [await open(), await open(), await open()];
    await db.query(`update top_up set amount_crypto = '0' where order_number = $1`, [broken.orderNumber]);
    for (const { walletAddress } of [broken, sound]) chain.pay(walletAddress!, HALF);
    chain.mine(101);
    await sync();
    chain.pay(next.walletAddress!, HALF);
    chain.mine(2);
    await sync();
    const statuses = await statusesOf(broken.accountId, sound.accountId, next.accountId);
    expect(statuses).toEqual(['CONFIRMING', 'FINAL', 'CREDITED']);
    expect(await warnings()).toEqual([`${broken.orderNumber} cannot be settled: Division by zero`]);
    expect(await shop.events('testnet')).toEqual(['gateway.warned']);
    await db.query(`update top_up set amount_crypto = '0.5' where order_number = $1`, [broken.orderNumber]);
    await sync();
    expect((await findTopUp(context, broken.orderNumber)).status).toBe('CONFIRMED');
    expect(await warnings()).toEqual([null]);
  });

  it('goes on with all other payments while one cannot be reversed, and names that one', async () => {
    const [[, broken], [, sound], [, next]] = [await open(), await open(), await open()];
    for (const { walletAddress } of [broken, sound]) chain.pay(walletAddress!, HALF);
    chain.mine(2);
    await sync();
    const [{ id } = { id: '' }] = await db.query<{ id: string }>('select id from payment where order_number = $1', [
      broken.orderNumber,
    ]);
    await asOwner(db, `alter table payment add constraint broken check (id <> '${id}' or status <> 'REVERSED')`);
    const mend = () => asOwner(db, 'alter table payment drop constraint if exists broken');
    onTestFinished(mend);
    chain.reorganise(2, { lost: true });
    chain.pay(next.walletAddress!, HALF);
    chain.mine(3);
    await sync();
    const statuses = await statusesOf(broken.accountId, sound.accountId, next.accountId);
    expect(statuses).toEqual(['CREDITED', 'REVERSED', 'CREDITED']);
    const [warning] = await warnings();
    expect(warning).toContain(`${id} cannot be reversed or restored: `);
    await mend();
    await sync();
    expect([await statusesOf(broken.accountId), await warnings()]).toEqual([['REVERSED'], [null]]);
  });
});
