/** The proof of the books finds each row that contradicts the ledger. */
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Database } from '../../../entities/database/database.ts';
import { newId, newOrderNumber } from '../../../entities/ids.ts';
import { proveBooks } from '../../../entities/payments/books.ts';
import { available, BONUS, gateway, held, openBalance, post, SUSPENSE } from '../../../entities/payments/ledger.ts';
import { Payment } from '../../../entities/payments/payment.ts';
import { TopUp } from '../../../entities/payments/top-up.ts';
import { asSuperuser, newDatabase, truncate } from '../../setup/database.ts';

let db: Database;
beforeAll(async () => {
  db = await newDatabase();
});

const account = newId('acct');
const topUpNumber = newOrderNumber('TOP');
const payment = newId('pay');
const unmatched = newId('pay');

/** Correct books: a paid top-up with its bonus, and a payment in suspense. */
beforeEach(async () => {
  await truncate(
    db,
    'transfer, usage_day, spending_month, balance, payment, x402_authorization, top_up, payout, movement',
  );
  await db.transaction((tx) => openBalance(tx, account));
  await db.source.manager.insert(TopUp, {
    ...{ id: newId('top'), accountId: account, orderNumber: topUpNumber, status: 'CONFIRMED', mode: 'CRYPTO' },
    ...{ amountMicros: 100n, bonusMicros: 2n, creditedMicros: 102n, crypto: 'BTC', network: 'bitcoin' },
    ...{ amountCrypto: '1', receivedCrypto: '1', rateMicros: 100n, confirmations: 1, confirmationsRequired: 1 },
  });
  const paid = { accountId: account, orderNumber: topUpNumber, network: 'bitcoin', address: 'a', units: '1' };
  const seen = { mode: 'CRYPTO' as const, coin: 'BTC', seenAt: new Date(), position: 0 };
  const [one, two] = ['pay:bitcoin:one:0', 'pay:bitcoin:two:0'];
  await db.source.manager.insert(Payment, [
    { ...paid, ...seen, id: payment, externalKey: one, txId: 'one', status: 'CREDITED', creditedMicros: 100n },
    { ...paid, ...seen, id: unmatched, externalKey: two, txId: 'two', status: 'UNMATCHED', creditedMicros: 7n },
  ]);
  const common = { orderNumber: topUpNumber, description: 'test' };
  const credit = available(account);
  await db.transaction((tx) =>
    post(
      tx,
      account,
      {
        ...common,
        kind: 'topup',
        debit: gateway('bitcoin'),
        credit,
        amountMicros: 100n,
        externalKey: one,
      },
      { ...common, kind: 'bonus', debit: BONUS, credit, amountMicros: 2n, externalKey: 'bonus:1' },
      {
        ...common,
        kind: 'topup',
        debit: gateway('bitcoin'),
        credit: SUSPENSE,
        amountMicros: 7n,
        externalKey: two,
      },
    ),
  );
});

describe('The proof of the books', () => {
  it('finds nothing in correct books', async () => {
    expect(await proveBooks(db)).toMatchObject({ balanced: true, firstFault: null, transfers: 3 });
  });

  it.each([
    ['balance', account, `update balance set available_micros = available_micros + 1`],
    ['payment', payment, `update payment set credited_micros = 99 where tx_id = 'one'`],
    ['payment', payment, `update payment set external_key = 'pay:bitcoin:three:0' where tx_id = 'one'`],
    ['transfer', expect.stringMatching(/^xfr_/), `delete from payment where tx_id = 'one'`],
    ['transfer', expect.stringMatching(/^xfr_/), `update payment set status = 'DROPPED' where tx_id = 'one'`],
    ['top_up', expect.stringMatching(/^top_/), `update top_up set credited_micros = 103`],
    ['payment', payment, `update payment set status = 'CREDITED' where tx_id = 'two'`],
    ['payment', payment, `update payment set paid_out_micros = 1 where tx_id = 'one'`],
    [
      'payout',
      'gateway:bitcoin BTC',
      `update payment set status = 'FINAL', final_at = now(), units = '5' where tx_id = 'one';
        insert into payout (id, key, account_id, status, source, network, coin, decimals, address, units, amount_micros, reason)
        values ('out_1', 'key', '${account}', 'REQUESTED', 'gateway:bitcoin', 'bitcoin', 'BTC', 8, 'x', '6', 20, 'test');
        insert into transfer (id, account_id, kind, debit, credit, amount_micros, external_key, description)
        values ('xfr_1', '${account}', 'adjustment', 'available:${account}', 'payouts', 20, 'payout:out_1', 'test');
        update balance set available_micros = available_micros - 20`,
    ],
    [
      'payout',
      account,
      `insert into payout (id, key, account_id, status, source, network, coin, decimals, address, units, amount_micros, reason)
        values ('out_1', 'key', '${account}', 'REQUESTED', 'wallet:bitcoin', 'bitcoin', 'BTC', 8, 'x', '1', 20, 'test');
        insert into transfer (id, account_id, kind, debit, credit, amount_micros, external_key, description)
        values ('xfr_1', '${account}', 'adjustment', 'available:${account}', 'payouts', 20, 'payout:out_1', 'test');
        update balance set available_micros = available_micros - 20`,
    ],
    ['top_up', expect.stringMatching(/^top_/), `update top_up set bonus_micros = 3`],
    ['balance', account, `update top_up set bonus_micros = 3, credited_micros = 103`],
    ['usage_day', account, `update usage_day set total_micros = total_micros + 1`],
    ['spending_month', 'key_1', `insert into spending_month values ('key_1', '2026-01-01', 1)`],
  ])('names the first wrong row: %s', async (table, row, damage) => {
    await asSuperuser(db, damage);
    expect(await proveBooks(db)).toMatchObject({
      balanced: false,
      firstFault: { table, row, detail: expect.any(String) },
    });
  });

  it('names each kind of fault with its number of rows, and the first 20 of them', async () => {
    await asSuperuser(
      db,
      `insert into spending_month select 'key_' || number, '2026-01-01', 1 from generate_series(10, 34) as number`,
    );
    await asSuperuser(db, `update top_up set credited_micros = 103`);
    const { faults } = await proveBooks(db);
    expect(faults.map(({ table, count }) => [table, count])).toEqual([
      ['top_up', 1],
      ['spending_month', 25],
    ]);
    expect(faults[1]!.rows).toEqual(Array.from({ length: 20 }, (_, index) => `key_${10 + index}`));
  });

  it('names a transfer that credits an x402 payment without a row', async () => {
    await db.transaction((tx) =>
      post(tx, account, {
        ...{ kind: 'topup', debit: gateway('x402'), credit: available(account), amountMicros: 5n },
        ...{ externalKey: 'x402:eip155:1:0x1:0x2', description: 'test' },
      }),
    );
    expect((await proveBooks(db)).firstFault).toMatchObject({ table: 'transfer' });
  });

  it('counts an x402 payment for the top-up that was made from it after its credit', async () => {
    const orderNumber = newOrderNumber('TOP');
    const money = { accountId: account, amountMicros: 5n };
    await db.source.manager.insert(TopUp, {
      ...{ ...money, id: newId('top'), orderNumber, status: 'CONFIRMED', mode: 'X402', bonusMicros: 0n },
      ...{ creditedMicros: 5n, crypto: 'USDC', network: 'eip155:1', amountCrypto: '5', receivedCrypto: '5' },
      ...{ rateMicros: 1n, confirmations: 1, confirmationsRequired: 1 },
    });
    await db.source.manager.insert(Payment, {
      ...{ id: newId('pay'), mode: 'X402', externalKey: 'x402:eip155:1:0x3:0x4', network: 'eip155:1', coin: 'USDC' },
      ...{ address: '0x6', accountId: account, orderNumber, units: '5', status: 'CREDITED', creditedMicros: 5n },
      seenAt: new Date(),
    });
    await db.transaction((tx) =>
      post(tx, account, {
        ...{ kind: 'topup', debit: gateway('x402:eip155:1'), credit: available(account), amountMicros: 5n },
        ...{ externalKey: 'x402:eip155:1:0x3:0x4', description: 'test' },
      }),
    );
    expect(await proveBooks(db)).toMatchObject({ balanced: true, firstFault: null });
  });

  it('names a failed server that still holds money', async () => {
    const orderNumber = newOrderNumber('SRV');
    await db.query(
      `insert into server (id, account_id, order_number, kind, status, hostname, service_code, region, os, price_month_micros, setup_fee_micros)
        values ($1, $2, $3, 'VPS', 'FAILED', 'x', 'vps-1', 'ams', 'debian-13', 10, 0)`,
      [newId('srv'), account, orderNumber],
    );
    await db.transaction((tx) =>
      post(tx, account, {
        ...{ kind: 'hold', debit: available(account), credit: held(account), amountMicros: 10n, orderNumber },
        ...{ externalKey: `hold:${orderNumber}`, description: 'test' },
      }),
    );
    expect((await proveBooks(db)).firstFault).toMatchObject({ table: 'server' });
    await truncate(db, 'server');
  });
});
