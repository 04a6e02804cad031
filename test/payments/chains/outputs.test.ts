/** Many small payments to one address. They cost their payer fees, and no other customer any time. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { proveBooks } from '../../../entities/payments/books.ts';
import type { Payment } from '../../../entities/payments/payment.ts';
import { writeObserved } from '../../../provisioning/payments/chains/observed-payments.ts';
import { cancelTopUp, findTopUp } from '../../../resolvers/payments/billing.ts';
import { asOwner } from '../../setup/database.ts';
import type { Paid } from './chain.ts';
import { HALF, openSyncedShop } from './synced-shop.ts';

const { shop, chain, sync, open } = await openSyncedShop();
const { db } = shop;

const paymentsOf = (orderNumber: string) =>
  db.query<Payment>('select * from payment where order_number = $1 order by position', [orderNumber]);
const statusesOf = async (orderNumber: string) => (await paymentsOf(orderNumber)).map(({ status }) => status);
/** The outputs of one new transaction to an address, the last one first. */
const split = (address: string, count: number): Paid[] => {
  const { txId } = chain.pay(address, 1n);
  const outputs = Array.from({ length: count }, (_, n) => ({ address, txId, position: n + 3, units: HALF / 10n }));
  chain.pool = [...chain.pool.slice(0, -1), ...outputs.map((one) => ({ ...one, coin: 'TST' })).toReversed()];
  return chain.pool.slice(-count);
};
const balances = async () => expect((await proveBooks(db)).firstFault).toBeNull();

describe('The outputs of one transaction to one address', () => {
  it('are one payment at the position of the first one, also when another block has them', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    const outputs = split(walletAddress!, 10);
    await sync();
    expect(await paymentsOf(orderNumber)).toMatchObject([{ position: 3, units: String(HALF), status: 'OBSERVED' }]);
    for (let block = 0; block < 2; block++) {
      chain.mine(3);
      await sync();
      expect(await findTopUp(context, orderNumber)).toMatchObject({ status: 'CONFIRMED', txIds: [outputs[0]!.txId] });
      expect(await shop.balance(accountId)).toBe(50_000_000n);
      if (!block) chain.reorganise(3);
    }
    expect(await statusesOf(orderNumber)).toEqual(['CREDITED']);
    await balances();
  });

  it('remain several payments if an earlier version wrote them, before their credit and after it', async () => {
    const [, { orderNumber, accountId, walletAddress }] = await open();
    const outputs = split(walletAddress!, 10);
    await db.transaction((tx) => writeObserved(tx, { network: 'testnet' }, outputs));
    await sync();
    expect(await statusesOf(orderNumber)).toEqual(Array(10).fill('OBSERVED'));
    for (let block = 0; block < 2; block++) {
      chain.mine(3);
      await sync();
      expect(await shop.balance(accountId)).toBe(50_000_000n);
      if (!block) chain.reorganise(3);
    }
    expect(await statusesOf(orderNumber)).toEqual(Array(10).fill('CREDITED'));
    await balances();
  });

  it('are credited once when the service knows only some of them', async () => {
    const [, { orderNumber, accountId, walletAddress }] = await open();
    const outputs = split(walletAddress!, 10);
    const known = { ...outputs[9]!, units: outputs[9]!.units * 4n };
    await db.transaction((tx) => writeObserved(tx, { network: 'testnet' }, [known]));
    for (let looks = 0; looks < 2; looks++) {
      chain.mine(3);
      await sync();
    }
    const units = (await paymentsOf(orderNumber)).map((one) => Number(one.units));
    expect(units).toEqual([Number(HALF) * 0.4, Number(HALF) * 0.6]);
    expect(await shop.balance(accountId)).toBe(50_000_000n);
  });

  it('are refused together if the node reports one of them twice', async () => {
    const [, { orderNumber, accountId, walletAddress }] = await open();
    const outputs = split(walletAddress!, 2);
    chain.pool.push(outputs[0]!);
    chain.mine(3);
    await sync().catch(() => {});
    expect([await statusesOf(orderNumber), await shop.balance(accountId)]).toEqual([[], 0n]);
    chain.reorganise(3, { lost: true });
    chain.mine(4);
    await sync();
  });
});

/** Counts conversions of amounts in the process, while something works. */
async function conversions(work: () => Promise<void>): Promise<number> {
  const real = BigInt;
  let count = 0;
  globalThis.BigInt = new Proxy(real, {
    apply: (target, _, [value]) => {
      count++;
      return target(value);
    },
  });
  try {
    await work();
    return count;
  } finally {
    globalThis.BigInt = real;
  }
}

describe('Many transactions to one address', () => {
  const pay = async (count: number) => {
    const [, topUp] = await open();
    for (let n = 0; n < count; n++) chain.pay(topUp.walletAddress!, HALF / BigInt(count));
    chain.mine(1);
    await sync();
    chain.mine(1);
    return topUp;
  };

  it('cause four times the work when they are four times as many', async () => {
    const work: number[] = [];
    for (const count of [200, 800]) {
      const { accountId } = await pay(count);
      work.push(await conversions(() => sync()));
      expect(await shop.balance(accountId)).toBe(50_000_000n);
    }
    expect(work[1]! / work[0]!).toBeLessThan(5);
  });

  it('are credited in one look, at most 500 in one transaction, and the top-up shows a hundred of them', async () => {
    const { orderNumber, accountId } = await pay(1_250);
    await sync();
    expect(await shop.balance(accountId)).toBe(50_000_000n);
    const parts = await db.query<{ count: number }>(
      `select count(*)::int from transfer where account_id = $1 group by created_at order by created_at`,
      [accountId],
    );
    expect(parts.map(({ count }) => count)).toEqual([500, 500, 250]);
    const [shown] = await db.query<{ count: number; status: string }>(
      'select cardinality(tx_ids) as count, status from top_up where order_number = $1',
      [orderNumber],
    );
    expect(shown).toEqual({ count: 100, status: 'CONFIRMED' });
    await balances();
  });

  it('cause one event with their number and their sum if they come late', async () => {
    const [context, { orderNumber, walletAddress }] = await open();
    await cancelTopUp(context, orderNumber);
    for (let n = 0; n < 20; n++) chain.pay(walletAddress!, HALF / 10n);
    chain.mine(3);
    await sync();
    const told = await db.query<{ data: object }>(
      `select data from event where type = 'payment.late' and data->>'orderNumber' = $1`,
      [orderNumber],
    );
    expect(told).toMatchObject([{ data: { count: 20, amountUsd: 100 } }]);
    const audited = await db.query(
      `select count from audit_entry where action = 'payment.late' and resource_id in (select id from payment where order_number = $1)`,
      [orderNumber],
    );
    expect(audited).toEqual([{ count: 20 }]);
  });
});

it('A top-up that cannot be settled rests for more and more looks, and keeps its warning', async () => {
  const [context, { orderNumber, walletAddress }] = await open();
  await asOwner(
    db,
    `create sequence tries; grant all on sequence tries to public;
      alter table top_up add constraint broken check (order_number <> '${orderNumber}' or status <> 'CONFIRMED' or nextval('tries') < 0)`,
  );
  const mend = () => asOwner(db, 'alter table top_up drop constraint if exists broken');
  onTestFinished(mend);
  chain.pay(walletAddress!, HALF);
  chain.mine(2);
  for (let syncs = 0; syncs < 10; syncs++) await sync();
  // Twice in the first look, once with others and once alone. Then in the third, the sixth and the eleventh of 20 looks.
  expect(await db.query('select last_value::int as tries from tries')).toEqual([{ tries: 6 }]);
  const { signal } = new AbortController();
  const [gateway] = await shop.provisioning.payments.gateways(db, signal);
  expect(gateway!.warning).toContain(`${orderNumber} cannot be settled: `);
  await mend();
  for (let syncs = 0; syncs < 9; syncs++) await sync();
  expect((await findTopUp(context, orderNumber)).status).toBe('CONFIRMED');
});
