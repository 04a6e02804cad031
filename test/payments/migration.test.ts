/** The migration to one table of payments keeps the books, and every answer of the service. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Database } from '../../entities/database/database.ts';
import type { Queryable } from '../../entities/database/transaction.ts';
import { rows } from '../../entities/database/transaction.ts';
import { newId } from '../../entities/ids.ts';
import { type Books, proveBooks } from '../../entities/payments/books.ts';
import { assign, giveBack, writeOff } from '../../resolvers/payments/payments.ts';
import { orderServer } from '../../resolvers/servers/order.ts';
import { openCustomerShop } from '../setup/customer-shop.ts';
import { databaseBefore } from '../setup/migration.ts';
import { contextOf } from '../setup/shop.ts';
import { VAULT } from '../setup/vault.ts';
import { another, MoodyX402, ORDER, openX402Shop, paymentForOrder } from './x402/shop.ts';

/** Transfers of a payment: credit or suspense, then what followed. Names stand for the ids of their rows. */
const CREDIT = ['topup', 'gateway', 'available', ''] as const;
const SUSPEND = ['topup', 'gateway', 'suspense', ''] as const;
const ASSIGN = ['adjustment', 'suspense', 'available', 'assign:'] as const;
const REVERSE = ['adjustment', 'available', 'suspense', 'reverse:'] as const;
const OFF = ['adjustment', 'suspense', 'gateway', 'write-off:'] as const;
const LOSS = ['adjustment', 'adjustment', 'gateway', 'loss:'] as const;
type Leg = readonly [kind: string, debit: string, credit: string, key: string];
interface Old {
  status: string;
  becomes: string;
  legs?: Leg[];
  set?: Record<string, unknown>;
}

/** The worth of each payment. A reversal found a third of it in the balance. */
const WORTH = 9_000_000n;
const TAKEN = 3_000_000n;
const BLOCK = { height: 5, block_hash: 'five', credited_at: new Date(0) };
const CHAIN: Record<string, Old> = {
  seen: { status: 'SEEN', becomes: 'OBSERVED' },
  mined: { status: 'MINED', becomes: 'CONFIRMING', set: BLOCK },
  credited: { status: 'CREDITED', becomes: 'CREDITED', legs: [CREDIT], set: BLOCK },
  reported: { status: 'CREDITED', becomes: 'FINAL', legs: [CREDIT] },
  assigned: { status: 'CREDITED', becomes: 'ASSIGNED', legs: [SUSPEND, ASSIGN], set: BLOCK },
  unmatched: { status: 'UNMATCHED', becomes: 'UNMATCHED', legs: [SUSPEND], set: BLOCK },
  returning: { status: 'UNMATCHED', becomes: 'UNMATCHED', legs: [SUSPEND], set: BLOCK },
  orphaned: { status: 'ORPHANED', becomes: 'DROPPED' },
  reversed: { status: 'REVERSED', becomes: 'REVERSED', legs: [CREDIT, REVERSE], set: { ...BLOCK, block_hash: null } },
  'written off': { status: 'WRITTEN_OFF', becomes: 'WRITTEN_OFF', legs: [CREDIT, REVERSE, OFF, LOSS] },
};
const FINAL = { final_at: new Date(0) };
const X402: Record<string, Old> = {
  settling: { status: 'SETTLING', becomes: 'OBSERVED' },
  settled: { status: 'SETTLED', becomes: 'CREDITED', legs: [CREDIT] },
  final: { status: 'SETTLED', becomes: 'FINAL', legs: [CREDIT], set: FINAL },
  'given away': { status: 'SETTLED', becomes: 'ASSIGNED', legs: [SUSPEND, ASSIGN] },
  'given away for good': { status: 'SETTLED', becomes: 'FINAL', legs: [SUSPEND, ASSIGN], set: FINAL },
  failed: { status: 'FAILED', becomes: 'DROPPED' },
  suspended: { status: 'UNMATCHED', becomes: 'UNMATCHED', legs: [SUSPEND] },
  'taken back': { status: 'REVERSED', becomes: 'REVERSED', legs: [CREDIT, REVERSE] },
  'lost in suspense': { status: 'WRITTEN_OFF', becomes: 'WRITTEN_OFF', legs: [SUSPEND, OFF] },
  'lost after its credit': { status: 'WRITTEN_OFF', becomes: 'WRITTEN_OFF', legs: [CREDIT, REVERSE, OFF, LOSS] },
};

const insert = (db: Queryable, table: string, row: Record<string, unknown>) =>
  db.query(
    `insert into ${table} (${Object.keys(row)}) values (${Object.keys(row).map((_, index) => `$${index + 1}`)})`,
    Object.values(row),
  );

/** Writes the transfers of a payment, and their effect on the balance. */
async function post(db: Queryable, account: string, { legs = [], status }: Old, payment: Posted): Promise<void> {
  for (const [kind, debit, credit, prefix] of legs) {
    const ofRest = prefix === 'reverse:' || (prefix === 'write-off:' && legs[0] === CREDIT);
    const amount = ofRest ? TAKEN : prefix === 'loss:' ? WORTH - TAKEN : WORTH;
    const side = (name: string) =>
      name === 'available' ? `available:${account}` : name === 'gateway' ? payment.gateway : name;
    const key = prefix === 'assign:' ? prefix + payment.id : prefix ? prefix + payment.reversalKey : payment.key;
    await insert(db, 'transfer', {
      ...{ id: newId('xfr'), account_id: account, kind, debit: side(debit), credit: side(credit) },
      ...{ amount_micros: amount, external_key: key, description: status },
    });
    const sign = credit === 'available' ? 1n : debit === 'available' ? -1n : 0n;
    await db.query('update balance set available_micros = available_micros + $2 where account_id = $1', [
      account,
      sign * amount,
    ]);
  }
}
interface Posted {
  id: string;
  key: string;
  reversalKey: string;
  gateway: string;
}

async function newAccount(db: Queryable): Promise<string> {
  const id = newId('acct');
  await insert(db, 'account', { id, kind: 'AGENT' });
  await insert(db, 'balance', { account_id: id });
  return id;
}

/** @returns the status that each payment gets, by its id */
async function fill(db: Queryable, account: string): Promise<Map<string, string>> {
  const wanted = new Map<string, string>();
  // Four of its payments were credited. Its chain removed two of them.
  await insert(db, 'top_up', {
    ...{ id: newId('top'), account_id: account, order_number: 'TOP-1', status: 'CONFIRMED', mode: 'CRYPTO' },
    ...{ amount_micros: 4n * WORTH, bonus_micros: 0n, credited_micros: 4n * WORTH, crypto: 'BTC', network: 'bitcoin' },
    ...{ amount_crypto: '1', received_crypto: '1', rate_micros: 1n, confirmations: 1, confirmations_required: 1 },
    tx_ids: [],
  });
  for (const [name, old] of Object.entries(CHAIN)) {
    const id = newId('pay');
    const key = `pay:bitcoin:${name}:0`;
    const isReversed = old.legs?.includes(REVERSE);
    await insert(db, 'payment', {
      ...{ id, network: 'bitcoin', tx_id: name, position: 0, coin: 'BTC', address: 'a', account_id: account },
      ...{ order_number: 'TOP-1', units: '9', status: old.status, seen_at: new Date() },
      ...{ credited_micros: old.legs ? WORTH : 0n, ...old.set },
      ...(isReversed && { reversed_micros: TAKEN, reversals: 1 }),
    });
    await post(db, account, old, { id, key, reversalKey: `1:${key}`, gateway: 'gateway:bitcoin' });
    wanted.set(id, old.becomes);
  }
  for (const [name, old] of Object.entries(X402)) {
    const id = newId('pay');
    const parts = { network: 'eip155:84532', payer: '0x1', nonce: `0x${Buffer.from(name).toString('hex')}` };
    const key = `x402:${parts.network}:${parts.payer}:${parts.nonce}`;
    await insert(db, 'x402_payment', {
      ...{ id, account_id: account, ...parts, asset: '0x3', pay_to: '0x4', amount_micros: WORTH, status: old.status },
      ...{ valid_before: new Date(), signature_digest: Buffer.alloc(32), lease_until: new Date(), ...old.set },
      ...(old.legs && { tx_id: name }),
      ...(old.legs?.includes(REVERSE) && { reversed_micros: TAKEN }),
    });
    await post(db, account, old, { id, key, reversalKey: key, gateway: `gateway:x402:${parts.network}` });
    wanted.set(id, old.becomes);
  }
  return wanted;
}

/** The money in suspense by the two tables of the version before. */
const SUSPENDED = `
  select coalesce(sum(micros), 0)::bigint as micros from (
    select case status when 'UNMATCHED' then credited_micros when 'REVERSED' then reversed_micros end as micros from payment
    union all
    select case status when 'UNMATCHED' then amount_micros when 'REVERSED' then reversed_micros end from x402_payment) as old`;
const suspenseOf = ({ totals }: Pick<Books, 'totals'>) => totals.find(({ name }) => name === 'suspense')?.micros;
/** The sums of the ledger of the version before. */
const TOTALS = `
  select case when name like 'available:%' then 'available' else name end as name, sum(micros)::bigint as micros from (
    select debit as name, -amount_micros as micros from transfer union all select credit, amount_micros from transfer) as legs
  group by 1 order by 1`;

describe('The migration to one table of payments', () => {
  it('keeps the state of every payment, and the books', async ({ onTestFinished }) => {
    const { url, db: client } = await databaseBefore('0018', onTestFinished);
    const old = { query: (sql, given = []) => rows(client, sql, given) } as Queryable;
    const account = await newAccount(old);
    const wanted = await fill(old, account);
    const totals = await old.query<Books['totals'][number]>(TOTALS);
    expect(suspenseOf({ totals })).toBe((await old.query<Books>(SUSPENDED))[0]!['micros' as never]);

    const db = await Database.open(url);
    onTestFinished(() => db.close());
    const found = await db.query<{ id: string; status: string }>('select id, status from payment');
    expect(new Map(found.map(({ id, status }) => [id, status]))).toEqual(wanted);
    const debt = WORTH - TAKEN;
    // Two payments are in suspense as a whole, and two are no loss any more. The account has paid these debts.
    const moved = new Map([
      ['available', -4n * debt],
      ['adjustment', 2n * debt],
      ['suspense', 2n * debt],
    ]);
    const after = totals.map(({ name, micros }) => ({ name, micros: micros + (moved.get(name) ?? 0n) }));
    const proof = await proveBooks(db);
    expect({ ...proof, totals: proof.totals.filter(({ micros }) => micros) }).toMatchObject({
      ...{ balanced: true, firstFault: null, totals: after.filter(({ micros }) => micros) },
    });
    const topUps = await db.query(`select credited_micros from top_up where order_number = 'TOP-1'`);
    expect(topUps).toEqual([{ creditedMicros: 2n * WORTH }]);
    const reversed = await db.query('select tx_id from payment where reversals > 0 order by tx_id');
    const names = ['lost after its credit', 'reversed', 'taken back', 'written off'];
    expect(reversed).toEqual(names.map((txId) => ({ txId })));

    const shop = await openCustomerShop(onTestFinished, { db, fundsMicros: 0n });
    const context = contextOf(shop, account);
    const idOf = (name: string) =>
      db.query<{ id: string }>('select id from payment where tx_id = $1', [name]).then(([row]) => row!.id);
    const other = shop.accountId;
    for (const name of ['reversed', 'suspended', 'taken back'])
      expect((await writeOff(context, await idOf(name), 'Gone')).status).toBe('WRITTEN_OFF');
    await assign(context, await idOf('unmatched'), { accountId: other, reason: 'It is hers' });
    await db.query(`update payment set final_at = now() where tx_id = 'returning'`);
    await giveBack(context, await idOf('returning'), { returnTxId: 'back', reason: 'By mistake' });
    expect(await shop.balance(other)).toBe(WORTH);
    const end = await proveBooks(db);
    expect([end.firstFault, suspenseOf(end)]).toEqual([null, 0n]);
  });

  it('keeps the answers to payments by x402, and refuses their other uses', async ({ onTestFinished }) => {
    const first = await openX402Shop(onTestFinished);
    const [kept, forgotten] = [await paymentForOrder(first.context), await paymentForOrder(first.context)];
    const answer = await orderServer(first.context, ORDER, kept);
    const { server } = await orderServer(another(first.context), ORDER, forgotten);
    const paid = await first.db.query<Record<string, unknown>>(
      `select id, account_id, network, payer, nonce, asset, address as pay_to, credited_micros as amount_micros, valid_before,
        signature_digest, sealed_request, sealed_answer, 'SETTLED' as status, tx_id, order_number, lease_until
        from payment join x402_authorization on payment_id = id`,
    );

    const { url, db: client } = await databaseBefore('0018', onTestFinished);
    const old = { query: (sql, given = []) => rows(client, sql, given) } as Queryable;
    await insert(old, 'account', { id: first.accountId, kind: 'AGENT' });
    await insert(old, 'balance', { account_id: first.accountId });
    for (const row of paid) {
      // The version before sealed under the name of its table.
      expect(VAULT.open(row.sealedRequest as Buffer, `x402_payment.sealed_request:${row.id}`)).toMatch(
        /^[0-9a-f]{64}$/,
      );
      const columns = Object.entries(row).map(([name, value]) => [
        name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`),
        value,
      ]);
      await insert(old, 'x402_payment', Object.fromEntries(columns));
    }
    await old.query('update x402_payment set sealed_answer = null where order_number = $1', [server.orderNumber]);

    const db = await Database.open(url);
    onTestFinished(() => db.close());
    const x402 = new MoodyX402({ folder: join(first.folder, 'x402') });
    const shop = await openCustomerShop(onTestFinished, { db, x402 });
    const owner = () => another(contextOf(shop, first.accountId));
    const used = { code: 'payment_nonce_used' };
    expect(await orderServer(owner(), ORDER, kept)).toEqual(answer);
    await expect(orderServer(owner(), { ...ORDER, hostname: 'other' }, kept)).rejects.toMatchObject(used);
    await expect(orderServer(another(shop.context), ORDER, kept)).rejects.toMatchObject(used);
    await expect(orderServer(owner(), ORDER, forgotten)).rejects.toMatchObject({
      ...{ ...used, message: `The payment was for ${server.orderNumber}.` },
    });
  });
});
