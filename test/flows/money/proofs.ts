/** The proofs during the walk, and after it. */
import { expect } from 'vitest';
import { proveBooks } from '../../../entities/payments/books.ts';
import { overdrawnSql } from '../../../entities/payments/movement.ts';
import { payableMicros } from '../../../entities/payments/payable.ts';
import { FIND_INSOLVENT, OVERDRAWN_ACCOUNTS_SQL } from '../../../entities/payments/solvency.ts';
import { earnedMicros, LOCK_PAID_TOP_UP } from '../../../entities/payments/top-up.ts';
import { accountOf } from '../../../resolvers/context.ts';
import { receiptOfTopUp } from '../../../resolvers/payments/receipts.ts';
import { contextOf } from '../../setup/shop.ts';
import { CHAIN_COIN } from './coin-chain.ts';
import type { Town } from './town.ts';

/** Proves that no balance is negative. */
export async function provePositive({ shop }: Town): Promise<void> {
  const [balance] = await shop.db.query<{ least: bigint }>(
    `select least(min(available_micros), min(held_micros), min(owed_micros), min(withheld_micros)) as least from balance`,
  );
  expect(balance!.least).toBeGreaterThanOrEqual(0n);
}

/** The sum that the transfers of a server brought to an account. */
const broughtSql = (account: string) => `sum(case when credit like '${account}' then amount_micros else 0 end)
    - sum(case when debit like '${account}' then amount_micros else 0 end)`;
/** Proves that no server gave back more than its customer paid for it, and that none holds less than nothing. */
export async function proveRefunds({ shop }: Town): Promise<void> {
  const refunded = await shop.db.query(
    `select order_number from transfer where order_number like 'SRV-%' group by order_number
      having ${broughtSql('revenue')} < 0 or ${broughtSql('held:%')} < 0`,
  );
  expect(refunded).toEqual([]);
}

/** Proves that a server at rest holds the money of its change alone. A dedicated one holds its price until the wipe. */
export async function proveHeld({ shop }: Town): Promise<void> {
  const wrong = await shop.db.query(
    `select order_number, status from server
      join (select order_number, ${broughtSql('held:%')} as held_micros from transfer group by order_number) as held using (order_number)
      where held_micros <> coalesce((change->>'heldMicros')::bigint, 0)
        and status <> 'PROVISIONING' and not (kind = 'DEDICATED' and status in ('DELETING', 'FAILED'))`,
  );
  expect(wrong).toEqual([]);
}

/** Proves that no coins leave that are not final, by the books and by the chains. */
export async function proveCovered(town: Town): Promise<void> {
  for (const sql of [OVERDRAWN_ACCOUNTS_SQL, overdrawnSql('true')]) expect(await town.shop.db.query(sql)).toEqual([]);
  expect(await findOverdrawn(town)).toEqual([]);
}

/**
 * Proves that no top-up keeps a bonus of money that left. Proves that the payable money of each account is its own and final.
 */
async function proveOwn({ shop: { db }, contexts }: Town): Promise<void> {
  const topUps = await db.query<{ orderNumber: string }>(`select order_number from top_up where status = 'CONFIRMED'`);
  for (const { orderNumber } of topUps) {
    const topUp = await LOCK_PAID_TOP_UP.first(db, [orderNumber]);
    const { bonusMicros, reversedBonusMicros, paidMicros } = topUp!;
    expect(bonusMicros - reversedBonusMicros).toBeLessThanOrEqual(earnedMicros(topUp!, paidMicros));
  }
  for (const accountId of new Set(contexts.map(accountOf))) {
    const [own] = await db.query<{ micros: bigint }>(
      `select (select coalesce(sum(credited_micros), 0) from payment where account_id = $1 and status = 'FINAL')
          + (select coalesce(sum(amount_micros), 0) from transfer where account_id = $1 and debit = 'adjustment')
          - (select coalesce(sum(amount_micros), 0) from payout
            where account_id = $1 and payment_id is null and status <> 'CANCELLED') as micros`,
      [accountId],
    );
    expect(await payableMicros(db, accountId)).toBeLessThanOrEqual(BigInt(own!.micros));
  }
}

/** Proves the books, and that the service is solvent by its own books and by the chains. */
export async function proveSolvent(town: Town): Promise<void> {
  const { db } = town.shop;
  expect((await proveBooks(db)).firstFault).toBeNull();
  expect(await FIND_INSOLVENT.all(db)).toEqual([]);
  await proveCovered(town);
  await proveOwn(town);
}

/** The coins of which the operator has sent more than the chains keep for good, by the chains themselves. */
async function findOverdrawn({ shop, networks, coins, sent }: Town): Promise<string[]> {
  const totals = new Map([[`${CHAIN_COIN.network} ${CHAIN_COIN.code}`, coins.final]]);
  const add = (name: string, units: bigint) => totals.set(name, (totals.get(name) ?? 0n) + units);
  const deposits = await depositsOf(shop.db);
  for (const network of networks)
    for (const { coin, address, units } of network.payments(network.finalHeight))
      if (deposits.has(address)) add(`${network.network} ${coin}`, units);
  for (const { network, coin, units } of sent.values()) add(`${network} ${coin}`, -units);
  return [...totals].filter(([, units]) => units < 0n).map(([name, units]) => `${name} ${units}`);
}

async function depositsOf(db: Town['shop']['db']): Promise<Set<string>> {
  const rows = await db.query<{ address: string }>(
    `select distinct wallet_address as address from top_up where mode = 'CRYPTO'`,
  );
  return new Set(rows.map(({ address }) => address));
}

/** Proves that the receipt of each confirmed top-up has the total that the top-up states. */
async function proveReceipts({ shop }: Town): Promise<void> {
  const topUps = await shop.db.query<{ accountId: string; orderNumber: string; totalMicros: bigint }>(
    `select account_id as "accountId", order_number as "orderNumber", credited_micros as "totalMicros" from top_up
      where status = 'CONFIRMED'`,
  );
  for (const { accountId, orderNumber, totalMicros } of topUps)
    expect(await receiptOfTopUp(contextOf(shop, accountId), orderNumber)).toMatchObject({
      number: orderNumber,
      totalMicros,
    });
}

/** Proves that each payment on a chain is where it belongs, and that nothing waits any more. */
export async function proveSettled(town: Town): Promise<void> {
  const { shop, networks, coins } = town;
  const { db } = shop;
  await proveReceipts(town);
  // A payment in suspense stays there when its chain removes it. No customer can get it then.
  const known = await db.query<{ key: string }>(
    `select concat_ws(' ', network, tx_id, address, units) as key from payment
      where mode = 'CRYPTO' and (status in ('CREDITED', 'ASSIGNED', 'FINAL', 'RETURNED')
        or (status in ('UNMATCHED', 'WRITTEN_OFF') and block_hash is not null))`,
  );
  const deposits = await depositsOf(db);
  const paid = networks.flatMap(({ network, chain }) =>
    chain.blocks.flatMap(({ payments }) =>
      payments
        .filter(({ address }) => deposits.has(address))
        .map(({ txId, address, units }) => `${network} ${txId} ${address} ${units}`),
    ),
  );
  expect(known.map(({ key }) => key).toSorted()).toEqual([...new Set(paid)].toSorted());
  expect(
    await db.query(`select order_number from top_up where status in ('PENDING', 'CONFIRMING')
      union all select id from payment where status in ('OBSERVED', 'CONFIRMING') or (mode = 'X402' and status = 'CREDITED')`),
  ).toEqual([]);
  const signed = await db.query<{ key: string; status: string }>(
    `select payer || ' ' || nonce as key, status from payment join x402_authorization on payment_id = id`,
  );
  const [kept, gone] = [
    ['ASSIGNED', 'FINAL', 'RETURNED'],
    ['REVERSED', 'DROPPED'],
  ];
  const wrong = signed.filter(({ key, status }) => (coins.has(key) ? gone : kept).includes(status));
  expect(wrong).toEqual([]);
  const unknown = coins.moved.filter((key) => !signed.some((one) => one.key === key) && !coins.isTaken(key));
  expect(unknown).toEqual([]);
}

/** Counts what the walk reached, for its reader. */
export async function summarize({ shop }: Town): Promise<object> {
  const [counted] = await shop.db.query<object>(
    `select (select sum(reversals)::int from payment) as reversals,
      (select jsonb_object_agg(key, count) from (
        select mode || ' ' || status as key, count(*) from payment group by 1) as payments) as payments,
      (select jsonb_object_agg(status, count) from (select status, count(*) from payout group by 1) as payouts) as payouts,
      (select jsonb_object_agg(coalesce(failure_code, status), count) from (
        select failure_code, status, count(*) from server group by 1, 2) as servers) as servers,
      (select jsonb_object_agg(type, count) from (
        select type, count(*) from event where type ~ '^(server|payment|payout)' group by 1) as told) as events,
      (select jsonb_object_agg(kind, count) from (select kind, count(*) from transfer group by 1) as posted) as transfers`,
  );
  return counted!;
}
