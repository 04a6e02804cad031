/** Payouts: coins that the operator sends to customers. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SYSTEM } from '../../entities/history/audit.ts';
import { newId } from '../../entities/ids.ts';
import { FIND_PAYABLE_UNITS } from '../../entities/payments/movement.ts';
import { type Payout, payoutSentence } from '../../entities/payments/payout.ts';
import { FIND_INSOLVENT } from '../../entities/payments/solvency.ts';
import { faultOfAddress } from '../../provisioning/index.ts';
import { exportedPayouts } from '../../provisioning/payments/wallet/export.ts';
import { importSent } from '../../provisioning/payments/wallet/import.ts';
import { exportPayouts } from '../../provisioning/payments/wallet/payouts.ts';
import { newDatabaseUrl } from '../setup/database.ts';
import { eventually, startFreehold } from '../setup/freehold.ts';
import { MACHINE } from '../setup/spawn.ts';

const DATABASE_URL = await newDatabaseUrl();
const { db, dataDir, newAccount, operator } = await startFreehold({ DATABASE_URL });

const REQUEST = `mutation ($accountId: ID!, $amountUsd: Usd!, $key: Line!, $address: Line! = "bc1qcustomer", $signature: Line, $coin: CoinCode! = "BTC") {
  requestPayout(accountId: $accountId, coin: $coin, amountUsd: $amountUsd, key: $key, address: $address, signature: $signature, reason: "She leaves") {
    id status source network units amountUsd txId isSigned } }`;
const request = async (given: Record<string, unknown>) => {
  const { data, errors } = await operator(REQUEST, given);
  return data?.requestPayout ?? errors[0];
};
const mutate = async (text: string, given: Record<string, unknown> = {}) => {
  const { data, errors } = await operator(`mutation ${text}`, given);
  return data ? Object.values(data)[0] : errors[0].message;
};
const books = async () => (await operator('{ books { balanced firstMismatch totals { name totalUsd } } }')).data.books;
const totals = async (): Promise<Record<string, number>> =>
  Object.fromEntries((await books()).totals.map((one: { name: string; totalUsd: number }) => [one.name, one.totalUsd]));
/** Proves the books and the solvency. */
const prove = async () => {
  expect(await books()).toMatchObject({ balanced: true, firstMismatch: null });
  expect(await FIND_INSOLVENT.all(db)).toEqual([]);
};
const command = (name: string, ...given: string[]) =>
  new Promise<{ code: number; output: string }>((done) => {
    const file = join(import.meta.dirname, '..', '..', 'commands', `${name}.ts`);
    const env = { ...MACHINE, DATABASE_URL, DATA_DIR: dataDir };
    execFile(process.execPath, [file, ...given], { env }, (error, stdout, stderr) =>
      done({ code: error ? Number(error.code) : 0, output: stdout + stderr }),
    );
  });

describe('A payout from the balance', () => {
  it('is requested, exported, imported and final, and takes its coins out of the gateway', async () => {
    const account = await newAccount();
    await account.rest('POST', '/v1/billing/topups', { amount_usd: 100, crypto: 'BTC' });
    await eventually(async () => (await account.balance()) === 102);
    const before = await totals();
    const paid = await request({ accountId: account.id, amountUsd: 60, key: 'one' });
    expect(paid).toMatchObject({ status: 'REQUESTED', source: 'gateway:bitcoin', units: '100000', isSigned: false });
    expect(await request({ accountId: account.id, amountUsd: 60, key: 'one' })).toEqual(paid);
    expect(await request({ accountId: account.id, amountUsd: 61, key: 'one' })).toMatchObject({
      extensions: { code: 'idempotency_key_reused' },
    });
    // The rest earns no bonus.
    expect(await account.balance()).toBe(40);
    expect((await totals()).payouts).toBe(60);
    await prove();
    const exported = await command('payouts', 'export');
    expect(JSON.parse(exported.output)).toMatchObject({
      payouts: [{ id: paid.id, network: 'bitcoin', coin: 'BTC', address: 'bc1qcustomer', amount: '0.001' }],
      sendmany: { BTC: { bc1qcustomer: '0.001' } },
    });
    const second = await command('payouts', 'export');
    expect(second.output).toContain('"payouts": []');
    expect(second.output).toContain('The list leaves out 1 payouts of earlier lists.');
    const again = await command('payouts', 'export', '--again');
    expect(again.output).toContain(`"id": "${paid.id}"`);
    expect(again.output).toMatch(
      /^out_\w+ was first exported at 20\S+Z\.\nWARNING: If you sign both lists, you pay twice/m,
    );
    const file = join(dataDir, 'sent.txt');
    writeFileSync(file, `${paid.id} cafe\n`);
    for (let i = 0; i < 2; i++) expect(await command('payouts', 'import', file)).toMatchObject({ code: 0 });
    const settled = await command('payouts', 'settle');
    expect(settled.output).toMatch(/^UNKNOWN out_.* by cafe$/m);
    expect(await mutate('($id: ID!) { cancelPayout(id: $id, reason: "Too late") { id } }', { id: paid.id })).toContain(
      'is BROADCAST and cannot become CANCELLED',
    );
    for (let i = 0; i < 2; i++)
      expect(await mutate('($id: ID!) { finishPayout(id: $id) { status txId } }', { id: paid.id })).toEqual({
        ...{ status: 'FINAL', txId: 'cafe' },
      });
    const after = await totals();
    expect(after.payouts).toBe(0);
    // The top-up asked for 0.00166667 BTC, rounded up. So the coins cost a little less than they were paid out for.
    expect(after['gateway:bitcoin']! - before['gateway:bitcoin']!).toBeCloseTo(59.99988, 6);
    expect(after.exchange).toBe(0.00012);
    await prove();
    const told = await db.query<{ type: string }>(`select type from event where subject = $1 order by id`, [paid.id]);
    expect(told.map(({ type }) => type)).toEqual(
      ['requested', 'exported', 'exported', 'broadcast', 'final'].map((state) => `payout.${state}`),
    );
  });

  it('in Monero is exported with each piconero, however large it is', () => {
    const units = '9007199254740993';
    const payout = { coin: 'XMR', network: 'monero', address: '4customer', units, decimals: 12 } as Payout;
    const { transfer } = exportedPayouts([payout]);
    expect(JSON.stringify(transfer)).toBe(`[{"address":"4customer","amount":${units}}]`);
  });

  it('gives the money back when the operator cancels it', async () => {
    const account = await newAccount();
    await account.topUp(50);
    const { id } = await request({ accountId: account.id, amountUsd: 50, key: 'cancelled', coin: 'USDC-BASE' });
    expect(await account.balance()).toBe(0);
    for (let i = 0; i < 2; i++)
      expect(await mutate('($id: ID!) { cancelPayout(id: $id, reason: "She stays") { status } }', { id })).toEqual({
        status: 'CANCELLED',
      });
    expect(await account.balance()).toBe(50);
    await prove();
  });

  it('is never above what is available, and final', async () => {
    const account = await newAccount();
    await account.rest('POST', '/v1/billing/topups', { amount_usd: 50, crypto: 'BTC' });
    await eventually(async () => (await account.balance()) === 50);
    const refused = { extensions: { code: 'insufficient_balance' } };
    expect(await request({ accountId: account.id, amountUsd: 60, key: 'much' })).toMatchObject(refused);
    await db.query(`update payment set status = 'CREDITED', final_at = null where account_id = $1`, [account.id]);
    expect(await request({ accountId: account.id, amountUsd: 10, key: 'unfinal' })).toMatchObject(refused);
    await db.query(`update payment set status = 'FINAL', final_at = now() where account_id = $1`, [account.id]);
    expect(await request({ accountId: account.id, amountUsd: 10, key: 'unfinal' })).toMatchObject({
      status: 'REQUESTED',
    });
    const twenty = await Promise.all(
      Array.from({ length: 20 }, (_, i) => request({ accountId: account.id, amountUsd: 10, key: `at once ${i}` })),
    );
    expect(twenty.filter(({ status }) => status === 'REQUESTED')).toHaveLength(4);
    await prove();
  });

  it('takes no more coins out of a gateway than are final there, less those of other payouts', async () => {
    const account = await newAccount();
    await account.rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto: 'LTC' });
    const isFinal = `select from payment where account_id = $1 and status = 'FINAL'`;
    await eventually(async () => (await db.query(isFinal, [account.id])).length === 1);
    const given = { accountId: account.id, amountUsd: 40, reason: 'Sorry', key: 'sorry' };
    expect(
      await mutate(
        '($accountId: ID!, $amountUsd: Usd!, $reason: Line!, $key: Line!) { adjustBalance(accountId: $accountId, amountUsd: $amountUsd, reason: $reason, key: $key) { balanceUsd } }',
        given,
      ),
    ).toEqual({ balanceUsd: 70 });
    const [much, ...some] = [40, 20, 20].map((amountUsd, i) => ({
      ...{ accountId: account.id, amountUsd, key: `coins ${i}`, coin: 'LTC' },
    }));
    expect((await request(much!)).message).toContain('gateway:litecoin has fewer final coins');
    const both = await Promise.all(some.map(request));
    expect(both.map(({ status }) => status ?? 'refused').toSorted()).toEqual(['REQUESTED', 'refused']);
    await prove();
  });

  it('goes to no address of the service, and only to one that signed the sentence if there is a signature', async () => {
    const { generatePrivateKey, privateKeyToAccount } = await import('viem/accounts');
    const signer = privateKeyToAccount(generatePrivateKey());
    const given = { accountId: 'acct_1', network: 'base', address: signer.address };
    const signature = await signer.signMessage({ message: payoutSentence(given) });
    expect(await faultOfAddress({ ...given, signature }, true)).toBeUndefined();
    expect(await faultOfAddress({ ...given, signature, accountId: 'acct_2' }, true)).toMatchObject({
      field: 'signature',
    });
    expect(await faultOfAddress({ ...given, signature: '0x00' }, true)).toMatchObject({ field: 'signature' });
    expect(await faultOfAddress({ ...given, signature: null, address: '0x12' }, true)).toMatchObject({
      field: 'address',
    });
    const account = await newAccount();
    await account.topUp(50);
    const [{ own }] = (await db.query<{ own: string }>(
      'select wallet_address as own from top_up where account_id = $1',
      [account.id],
    )) as [{ own: string }];
    const refused = await request({ accountId: account.id, amountUsd: 10, key: 'own', address: own });
    expect(refused.message).toBe('The address belongs to this service.');
    const printed = await request({ accountId: account.id, amountUsd: 10, key: 'printed', address: 'bc1…' });
    expect(printed.message).toBe('address is no address of bitcoin.');
  });
});

describe('A payout of an unmatched payment', () => {
  const RETURN = `($id: ID!, $key: Line!) {
    requestReturn(paymentId: $id, key: $key, address: "ltc1q", reason: "Wrong coin") { id status units amountUsd } }`;
  /** Writes a final payment of 4 USD in another coin than asked for. @returns its id */
  async function unmatched(accountId: string): Promise<string> {
    const id = newId('pay');
    await db.query(
      `insert into payment (id, mode, external_key, network, tx_id, position, coin, address, account_id, units, status, credited_micros, seen_at, final_at)
        values ($1, 'CRYPTO', 'pay:bitcoin:' || $1, 'bitcoin', $1, 0, 'LTC', 'x', $2, '5000000', 'UNMATCHED', 4000000, now(), now())`,
      [id, accountId],
    );
    await db.query(
      `insert into transfer (id, account_id, kind, debit, credit, amount_micros, external_key, description)
        values ($1, $2, 'topup', 'gateway:bitcoin', 'suspense', 4000000, 'pay:bitcoin:' || $3, 'test')`,
      [newId('xfr'), accountId, id],
    );
    return id;
  }
  const sent = (id: string) => importSent(db, [{ id, txId: id }], SYSTEM);
  const payable = async () => BigInt((await FIND_PAYABLE_UNITS.first(db, ['gateway:bitcoin', 'LTC']))!.units);

  it('sends the payment back from suspense, and puts it there again when the operator cancels it', async () => {
    const id = await unmatched((await newAccount()).id);
    const first = (await mutate(RETURN, { id, key: 'back' })) as { id: string };
    expect(first).toMatchObject({ status: 'REQUESTED', units: '5000000', amountUsd: 4 });
    expect(await mutate(RETURN, { id, key: 'back again' })).toContain('only an UNMATCHED payment');
    await prove();
    await mutate('($id: ID!) { cancelPayout(id: $id, reason: "Not yet") { id } }', { id: first.id });
    await prove();
    const second = (await mutate(RETURN, { id, key: 'back again' })) as { id: string };
    await command('payouts', 'export');
    const file = join(dataDir, 'returned.txt');
    writeFileSync(file, `${second.id},beef\n`);
    expect(await command('payouts', 'import', file)).toMatchObject({ code: 0 });
    await mutate('($id: ID!) { finishPayout(id: $id) { status } }', { id: second.id });
    expect(await db.query('select status, return_tx_id from payment where id = $1', [id])).toEqual([
      { status: 'RETURNED', returnTxId: 'beef' },
    ]);
    await prove();
  });

  it.each([
    ['in suspense', 0, false],
    ['with the account that got the coins', 0, true],
    ['with another account', 4, true],
  ])('is booked if it was cancelled and sent all the same, with the money %s', async (_, left, isAssigned) => {
    const [owner, other] = [await newAccount(), await newAccount()];
    const id = await unmatched(owner.id);
    const payout = (await mutate(RETURN, { id, key: id })) as { id: string };
    await exportPayouts(db, SYSTEM);
    await mutate('($id: ID!) { cancelPayout(id: $id, reason: "Not yet") { id } }', { id: payout.id });
    const accountId = left ? other.id : owner.id;
    const ASSIGN =
      '($id: ID!, $accountId: ID!) { assignPayment(id: $id, accountId: $accountId, reason: "Hers") { id } }';
    if (isAssigned) await mutate(ASSIGN, { id, accountId });
    const before = await payable();
    await sent(payout.id);
    expect(before - (await payable())).toBe(isAssigned ? 5_000_000n : 0n);
    expect([await owner.balance(), await other.balance()]).toEqual([0, left]);
    await prove();
    await mutate('($id: ID!) { finishPayout(id: $id) { status } }', { id: payout.id });
    expect(before - (await payable())).toBe(isAssigned ? 5_000_000n : 0n);
    await prove();
  });

  it('takes the coins of others if another payout has sent the payment back', async () => {
    const { id: owner } = await newAccount();
    const [id] = [await unmatched(owner), await unmatched(owner)];
    const before = await payable();
    const first = (await mutate(RETURN, { id, key: `${id} one` })) as { id: string };
    await exportPayouts(db, SYSTEM);
    await mutate('($id: ID!) { cancelPayout(id: $id, reason: "Not yet") { id } }', { id: first.id });
    const second = (await mutate(RETURN, { id, key: `${id} other` })) as { id: string };
    await exportPayouts(db, SYSTEM);
    await sent(second.id);
    expect(before - (await payable())).toBe(0n);
    await sent(first.id);
    expect(before - (await payable())).toBe(5_000_000n);
    for (const payout of [first, second])
      await mutate('($id: ID!) { finishPayout(id: $id) { status } }', { id: payout.id });
    expect(before - (await payable())).toBe(5_000_000n);
    await prove();
  });

  it('takes an addition by the operator again, and no money of a top-up, if it was cancelled and sent', async () => {
    const account = await newAccount();
    await account.topUp(50);
    const ADD =
      '($id: ID!) { adjustBalance(accountId: $id, amountUsd: 50, reason: "A gift", key: "gift") { balanceUsd } }';
    await mutate(ADD, { id: account.id });
    const { id } = await request({ accountId: account.id, amountUsd: 50, key: 'gift', coin: 'USDC-BASE' });
    await exportPayouts(db, SYSTEM);
    await mutate('($id: ID!) { cancelPayout(id: $id, reason: "Not yet") { id } }', { id });
    await sent(id);
    const parts = await db.query('select 1 from payment where account_id = $1 and paid_out_micros > 0', [account.id]);
    expect([parts, await account.balance()]).toEqual([[], 50]);
    await prove();
  });
});
