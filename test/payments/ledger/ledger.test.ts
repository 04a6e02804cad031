import { describe, expect, it } from 'vitest';
import { ApiError } from '../../../entities/errors.ts';
import { newId } from '../../../entities/ids.ts';
import { verifyBooks } from '../../../entities/payments/books.ts';
import {
  available,
  Balance,
  BONUS,
  gateway,
  held,
  openBalance,
  type Posting,
  post,
  REVENUE,
  Transfer,
} from '../../../entities/payments/ledger.ts';
import { asOwner, asSuperuser, newDatabase } from '../../setup/database.ts';

const GATEWAY = gateway('bitcoin');
const db = await newDatabase();

const newKey = () => newId('xfr');
const topUp = (account: string, amountMicros: bigint, externalKey = newKey()): Posting => ({
  kind: 'topup',
  debit: GATEWAY,
  credit: available(account),
  amountMicros,
  externalKey,
  description: 'Top-up',
});
const move = (kind: Posting['kind'], debit: string, credit: string, amountMicros: bigint): Posting => ({
  kind,
  debit,
  credit,
  amountMicros,
  externalKey: newKey(),
  description: kind,
});
const hold = (account: string, micros: bigint) => move('hold', available(account), held(account), micros);

const posted = (account: string, ...postings: Posting[]) => db.transaction((tx) => post(tx, account, ...postings));
const balanceOf = async (accountId: string) => {
  const { availableMicros, heldMicros } = await db.source.manager.findOneByOrFail(Balance, { accountId });
  return { availableMicros, heldMicros };
};
const transfersOf = (accountId: string) => db.source.manager.findBy(Transfer, { accountId });
async function newAccount(micros = 0n): Promise<string> {
  const account = newId('acct');
  await db.transaction((tx) => openBalance(tx, account));
  await posted(account, topUp(account, micros));
  return account;
}
const refusal = { code: 'insufficient_balance' };

it('The books are empty and balanced at first', async () => {
  expect(await verifyBooks(db)).toEqual({ balanced: true, transfers: 0, mismatches: [], totals: [] });
});

describe('A posting', () => {
  it('moves money between the two accounts of a customer, and records its purpose', async () => {
    const account = await newAccount(10_000_000n);
    const periodFrom = new Date('2026-01-01T00:00:00.123Z');
    const order = { orderNumber: 'SRV-0123456789', serviceCode: 'vps-1', periodFrom, periodTo: new Date() };
    expect(await posted(account, { ...hold(account, 6_000_000n), ...order })).toBe(1);
    expect(await balanceOf(account)).toEqual({ availableMicros: 4_000_000n, heldMicros: 6_000_000n });
    expect(await transfersOf(account)).toContainEqual(
      expect.objectContaining({ ...order, kind: 'hold', amountMicros: 6_000_000n, debit: available(account) }),
    );
  });

  it('changes nothing if it repeats an external key', async () => {
    const account = await newAccount();
    const once = topUp(account, 5_000_000n);
    expect(await posted(account, once)).toBe(1);
    expect(await posted(account, once)).toBe(0);
    expect(await posted(account, once, once, topUp(account, 1n))).toBe(1);
    expect(await posted(account, { ...once, amountMicros: 9_000_000n })).toBe(0);
    expect(await balanceOf(account)).toEqual({ availableMicros: 5_000_001n, heldMicros: 0n });
    expect(await transfersOf(account)).toHaveLength(2);
  });

  it('exists once after 16 concurrent attempts, among others and in any order', async () => {
    const account = await newAccount();
    const postings = [1n, 20n, 300n].map((micros) => topUp(account, micros));
    const counts = await Promise.all(
      Array.from({ length: 16 }, (_, i) => posted(account, ...(i % 2 ? postings : postings.toReversed()))),
    );
    expect(counts.reduce((sum, count) => sum + count)).toBe(3);
    expect(await balanceOf(account)).toEqual({ availableMicros: 321n, heldMicros: 0n });
  });

  it('of zero is left out', async () => {
    const account = await newAccount();
    expect(await posted(account, topUp(account, 0n))).toBe(0);
    expect(await posted(account)).toBe(0);
    expect(await transfersOf(account)).toEqual([]);
  });

  it('is exact beyond the range of a float', async () => {
    const account = await newAccount(2n ** 60n + 1n);
    await posted(account, hold(account, 2n ** 59n + 3n));
    expect(await balanceOf(account)).toEqual({ availableMicros: 2n ** 59n - 2n, heldMicros: 2n ** 59n + 3n });
  });

  it('notifies the bus of the account only if its balance changed', async () => {
    const account = await newAccount();
    const heard: string[] = [];
    const stop = db.bus.listen(({ kind, accountId }) => heard.push(`${kind} ${accountId}`));
    const once = topUp(account, 1n);
    await posted(account, once);
    await posted(account, once);
    await expect(posted(account, hold(account, 2n))).rejects.toMatchObject(refusal);
    stop();
    expect(heard).toEqual([`balance ${account}`]);
  });
});

describe('A balance', () => {
  it('cannot become negative: the whole posting is refused as insufficient_balance', async () => {
    const account = await newAccount(5_000_000n);
    const attempts = [
      [hold(account, 5_000_001n)],
      [topUp(account, 1_000_000n), hold(account, 6_000_001n)],
      [move('capture', held(account), REVENUE, 1n)],
      [hold(account, 1_000_000n), move('capture', held(account), REVENUE, 1_000_001n)],
    ];
    for (const attempt of attempts) {
      const error = await posted(account, ...attempt).catch((e) => e);
      expect(error).toBeInstanceOf(ApiError);
      expect(error).toMatchObject(refusal);
    }
    expect(await balanceOf(account)).toEqual({ availableMicros: 5_000_000n, heldMicros: 0n });
    expect(await transfersOf(account)).toHaveLength(1);
  });

  it('can be spent to the last micro-USD, including the credit of the same posting', async () => {
    const account = await newAccount(5n);
    expect(await posted(account, topUp(account, 2n), hold(account, 7n))).toBe(2);
    expect(await balanceOf(account)).toEqual({ availableMicros: 0n, heldMicros: 7n });
  });

  it('covers 40 of 64 concurrent holds if it suffices for 40', async () => {
    const account = await newAccount(40n * 6_000_000n + 5_999_999n);
    const results = await Promise.allSettled(
      Array.from({ length: 64 }, () => posted(account, hold(account, 6_000_000n))),
    );
    const refused = results.filter((result) => result.status === 'rejected');
    expect(refused).toHaveLength(24);
    for (const { reason } of refused) expect(reason).toMatchObject(refusal);
    expect(await balanceOf(account)).toEqual({ availableMicros: 5_999_999n, heldMicros: 240_000_000n });
    expect(await transfersOf(account)).toHaveLength(41);
  });

  it('must exist: a customer without one cannot post', async () => {
    const account = newId('acct');
    await expect(posted(account, topUp(account, 1n))).rejects.toThrow();
    expect(await transfersOf(account)).toEqual([]);
  });

  it('of another customer cannot be touched', async () => {
    const [account, other] = [await newAccount(5n), await newAccount(5n)];
    await expect(posted(account, move('adjustment', available(other), available(account), 5n))).rejects.toThrow();
    await expect(posted(account, move('adjustment', held(account), held(other), 5n))).rejects.toThrow();
    expect(await balanceOf(other)).toEqual({ availableMicros: 5n, heldMicros: 0n });
    expect(await transfersOf(account)).toHaveLength(1);
  });
});

describe('A transfer', () => {
  it.each([
    ['updated', 'update transfer set amount_micros = 1'],
    ['deleted', 'delete from transfer'],
    ['truncated', 'truncate transfer'],
    ['replaced', `insert into transfer select * from transfer on conflict (id) do update set description = ''`],
  ])('cannot be %s', async (_, statement) => {
    const account = await newAccount(1_000_000n);
    const before = await transfersOf(account);
    await expect(asOwner(db, statement)).rejects.toThrow('transfer is append-only');
    expect(await transfersOf(account)).toEqual(before);
  });

  it.each([
    ['of a negative amount', { amountMicros: '-1' }],
    ['of zero', { amountMicros: '0' }],
    ['from an account to itself', { credit: GATEWAY }],
    ['of an unknown kind', { kind: 'gift' }],
    ['from an account that the ledger does not have', { debit: 'treasury' }],
    ['from a gateway without a name', { debit: 'gateway:' }],
    ['to an account of another customer', { credit: 'available:acct_other' }],
    ['to the held money of another customer', { credit: 'held:acct_other' }],
  ])('cannot be %s, by SQL either', async (_, wrong) => {
    const { kind, debit, credit, amountMicros } = { ...topUp('acct', 1n), ...wrong };
    const insert = `insert into transfer (id, account_id, kind, debit, credit, amount_micros, external_key, description)
      values ($1, 'acct', $2, $3, $4, $5, $1, '')`;
    await expect(db.query(insert, [newKey(), kind, debit, credit, amountMicros])).rejects.toThrow(/check constraint/);
  });
});

describe('The balance of an account with transfers', () => {
  it('cannot be deleted, and no transfer can be of an account without one', async () => {
    const account = await newAccount(5n);
    await expect(asOwner(db, `delete from balance where account_id = '${account}'`)).rejects.toThrow(
      /transfer_balance/,
    );
    await expect(posted(newId('acct'), topUp(account, 1n))).rejects.toThrow();
    const other = newId('acct');
    await expect(posted(other, topUp(other, 1n))).rejects.toThrow(/transfer_balance/);
  });
});

describe('The books', () => {
  it('balance after random concurrent postings of several customers, and hold every acknowledged posting', async () => {
    const accounts = await Promise.all(Array.from({ length: 6 }, () => newAccount()));
    const expected = new Map(accounts.map((account) => [account, { availableMicros: 0n, heldMicros: 0n }]));
    const random = (below: number) => Math.floor(Math.random() * below);
    const outcomes = { posted: 0, refused: 0 };
    const worker = async () => {
      for (let i = 0; i < 40; i++) {
        const account = accounts[random(accounts.length)]!;
        const postings = randomPostings(account, random);
        const accepted = await posted(account, ...postings).catch((error) => {
          if (error.code !== 'insufficient_balance') throw error;
        });
        outcomes[accepted ? 'posted' : 'refused'] += 1;
        if (accepted) for (const posting of postings) apply(expected.get(account)!, account, posting);
      }
    };
    await Promise.all(Array.from({ length: 10 }, worker));
    for (const account of accounts) expect(await balanceOf(account)).toEqual(expected.get(account));
    expect(outcomes.posted).toBeGreaterThan(40);
    expect(outcomes.refused).toBeGreaterThan(10);
    await expectBalancedBooks();
  });

  it('name the customers whose stored balance was changed by SQL, and the difference', async () => {
    const [account, other] = [await newAccount(5_000_000n), await newAccount(1n)];
    const tamper = (id: string, sql: string) => db.query(`update balance set ${sql} where account_id = $1`, [id]);
    await tamper(account, 'available_micros = available_micros + 7');
    await tamper(other, 'available_micros = 0');
    expect(await verifyBooks(db)).toMatchObject({
      balanced: false,
      mismatches: [
        { accountId: account, keptMicros: 5_000_007n, summedMicros: 5_000_000n, count: 2 },
        { accountId: other, keptMicros: 0n, summedMicros: 1n, count: 2 },
      ],
    });
    await tamper(account, 'available_micros = 4000000, held_micros = 1000000');
    expect((await verifyBooks(db)).mismatches.map(({ accountId }) => accountId)).toEqual([account, other]);
    await tamper(account, 'available_micros = 5000000, held_micros = 0');
    expect(await verifyBooks(db)).toMatchObject({ balanced: false, mismatches: [{ accountId: other }] });
    await tamper(other, 'available_micros = 1');
    await expectBalancedBooks();
  });

  it('name a customer whose stored balance was deleted', async () => {
    const account = await newAccount(5n);
    await asSuperuser(db, 'delete from balance where account_id = $1', [account]);
    expect(await verifyBooks(db)).toMatchObject({
      balanced: false,
      mismatches: [{ accountId: account, keptMicros: 0n, summedMicros: 5n }],
    });
    await db.query('insert into balance (account_id, available_micros) values ($1, 5)', [account]);
    await expectBalancedBooks();
  });
});

function randomPostings(account: string, random: (below: number) => number): Posting[] {
  const micros = () => BigInt(1 + random(9_000_000));
  const some = [
    () => topUp(account, micros()),
    () => move('bonus', BONUS, available(account), micros() / 10n + 1n),
    () => hold(account, micros()),
    () => move('capture', held(account), REVENUE, micros()),
    () => move('release', held(account), available(account), micros()),
    () => move('renewal', available(account), REVENUE, micros()),
    () => move('refund', REVENUE, available(account), micros() / 4n + 1n),
  ];
  return Array.from({ length: 1 + random(3) }, () => some[random(some.length)]!());
}

function apply(sums: { availableMicros: bigint; heldMicros: bigint }, account: string, posting: Posting) {
  for (const [name, sign] of [
    [posting.debit, -1n],
    [posting.credit, 1n],
  ] as const) {
    if (name === available(account)) sums.availableMicros += sign * posting.amountMicros;
    if (name === held(account)) sums.heldMicros += sign * posting.amountMicros;
  }
}

async function expectBalancedBooks() {
  const { totals, ...books } = await verifyBooks(db);
  const [{ count } = { count: -1 }] = await db.query<{ count: number }>('select count(*)::int as count from transfer');
  expect(books).toEqual({ balanced: true, transfers: count, mismatches: [] });
  expect(totals.reduce((sum, { micros }) => sum + micros, 0n)).toBe(0n);
  expect(totals.map(({ name }) => name)).toEqual(totals.map(({ name }) => name).toSorted());
}
