/** The proof of the books compares movements, payouts and servers with the ledger and with the events. */
import { beforeAll, expect, it } from 'vitest';
import { SYSTEM } from '../../entities/history/audit.ts';
import { proveBooks } from '../../entities/payments/books.ts';
import { importSent } from '../../provisioning/payments/wallet/import.ts';
import { exportPayouts, finishPayout } from '../../provisioning/payments/wallet/payouts.ts';
import { move, refundInCoin } from '../../resolvers/payments/payouts.ts';
import { asSuperuser } from '../setup/database.ts';
import { HALF, openSyncedShop } from './chains/synced-shop.ts';

const { shop, chain, sync, open } = await openSyncedShop();
const { db } = shop;

/** A customer with a renewed server and a payout, and a sweep by the operator. */
beforeAll(async () => {
  await sync();
  const [context, { walletAddress, accountId }] = await open();
  chain.pay(walletAddress!, HALF);
  for (const blocks of [2, 100]) {
    chain.mine(blocks);
    await sync();
  }
  await shop.server(accountId);
  await shop.tick('renewals');
  const common = { accountId, coin: 'TST', amountUsd: 10_000_000n, reason: 'She leaves' };
  const { id } = await refundInCoin(context, { ...common, key: 'final', address: 'elsewhere' });
  await refundInCoin(context, { ...common, key: 'open', address: 'elsewhere' });
  await exportPayouts(db, SYSTEM);
  await importSent(db, [{ id, txId: 'sent' }], SYSTEM);
  await db.transaction((tx) => finishPayout(tx, id, SYSTEM));
  const sweep = { source: 'gateway:testnet', target: 'wallet:testnet', coin: 'TST', txId: 'swept' };
  await move(context, { ...sweep, units: '1000', amountMicros: null });
});

it('True books with movements, payouts and a renewed server have no fault', async () => {
  expect((await proveBooks(db)).faults).toEqual([]);
  const [counted] = await db.query(`select (select count(*)::int from movement) as movements,
    (select count(*)::int from payout) as payouts, (select count(*)::int from transfer where kind = 'renewal') as renewals`);
  expect(counted).toEqual({ movements: 2, payouts: 2, renewals: 1 });
});

it.each([
  ['movement', `update movement set source = 'wallet:other' where tx_id = 'swept'`],
  ['movement', `update movement set target = 'fees' where tx_id = 'swept'`],
  ['movement', `update movement set coin = 'OTHER' where tx_id = 'swept'`],
  ['movement', `update movement set units = '999' where tx_id = 'swept'`],
  ['movement', `update movement set tx_id = 'other' where tx_id = 'swept'`],
  ['movement', `update movement set amount_micros = amount_micros + 1`],
  ['movement', `delete from movement where tx_id = 'swept'`],
  ['movement', `delete from movement where payout_id is not null`],
  ['movement', `update movement set units = '1' where payout_id is not null`],
  ['payout', `update payout set address = 'of a thief' where key = 'open'`],
  ['payout', `update payout set units = '10000001' where key = 'open'`],
  ['payout', `update payout set coin = 'OTHER' where key = 'open'`],
  ['server', `update server set paid_until = paid_until + interval '10 years'`],
  ['server', `update server set price_month_micros = price_month_micros - 1`],
  ['payment', `update payment set coin = 'OTHER'`],
])('The proof names the table %s after: %s', async (table, damage) => {
  await asSuperuser(db, `create table kept as select * from ${table}`);
  try {
    await asSuperuser(db, damage);
    expect((await proveBooks(db)).faults.map((fault) => fault.table)).toContain(table);
  } finally {
    await asSuperuser(db, `delete from ${table}; insert into ${table} select * from kept; drop table kept`);
  }
  expect((await proveBooks(db)).faults).toEqual([]);
});
