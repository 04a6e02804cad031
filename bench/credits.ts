/** Measures how fast a worker credits a block full of payments: it reads the chain and settles each top-up. */
import assert from 'node:assert/strict';
import { Database } from '../entities/database/database.ts';
import { newId, newOrderNumber } from '../entities/ids.ts';
import { chainSyncProcess } from '../provisioning/payments/chains/sync.ts';
import { Chain, COINS } from '../test/payments/chains/chain.ts';
import { median } from './figure.ts';

const PAYMENTS = 1_000;
const ROUNDS = 5;
/** Rounds that warm up compilers and pools; not counted. */
const ROUNDS_BEFORE = 1;
const COIN = { ...COINS[0]!, confirmationsRequired: 1 };
/** 50 USD, at 100 USD a coin. */
const UNITS = 50_000_000n;

/** @returns payments credited per second, each to a different account */
export async function credits(databaseUrl: string): Promise<number> {
  const db = await Database.open(databaseUrl);
  try {
    return await measure(db);
  } finally {
    await db.close();
  }
}

async function measure(db: Database): Promise<number> {
  const chain = new Chain();
  const { steps } = chainSyncProcess({
    db,
    reader: chain,
    lost: { read: async () => new Map() },
    coins: () => [COIN],
    pollSeconds: 1,
  });
  let data: object = {};
  const follow = async () => {
    const task = { aborted: new AbortController().signal, attempts: 1, data };
    data = { ...data, ...(await steps.start!(task as never)).data };
  };
  await follow();
  const perSecond: number[] = [];
  for (let round = -ROUNDS_BEFORE; round < ROUNDS; round++) {
    for (const address of await openTopUps(db)) chain.pay(address, UNITS);
    chain.mine();
    const begun = performance.now();
    await follow();
    const seconds = (performance.now() - begun) / 1000;
    const [found] = await db.query<{ count: number }>(
      `select count(*)::int as count from payment where status = 'CREDITED' and credited_micros = 50000000`,
    );
    assert.equal(found!.count, (round + ROUNDS_BEFORE + 1) * PAYMENTS, 'Not every payment was credited.');
    if (round >= 0) perSecond.push(PAYMENTS / seconds);
  }
  return median(perSecond);
}

/** Opens one top-up for each of many accounts. @returns their addresses */
async function openTopUps(db: Database): Promise<string[]> {
  const ids = Array.from({ length: PAYMENTS }, () => newId('acct'));
  const given = 'unnest($1::text[], $2::text[], $3::text[]) as given(account, id, number)';
  const numbers = ids.map(() => newOrderNumber('TOP'));
  const parameters = [ids, ids.map(() => newId('top')), numbers];
  await db.query(`insert into account (id, kind) select account, 'AGENT' from ${given}`, parameters);
  await db.query(`insert into balance (account_id) select account from ${given}`, parameters);
  await db.query(
    `insert into top_up (id, account_id, order_number, status, mode, amount_micros, bonus_micros, crypto, network, amount_crypto,
        received_crypto, rate_micros, wallet_address, confirmations, confirmations_required, credited_micros, expires_at)
      select id, account, number, 'PENDING', 'CRYPTO', 50000000, 0, 'TST', 'testnet', '0.5',
        '0', 100000000, 'to ' || number, 0, 1, 0, now() + interval '30 minutes' from ${given}`,
    parameters,
  );
  await db.query('vacuum (analyze) top_up, balance, payment, transfer');
  return numbers.map((number) => `to ${number}`);
}
