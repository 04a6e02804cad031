/** The order in which a worker takes the due tasks of one party, such as a payment gateway. */
import { beforeEach, expect, it } from 'vitest';
import { TAKE_LEASES_IN_TURN } from '../../entities/tasks/lease.ts';
import { signalTask } from '../../entities/tasks/start.ts';
import { startFreehold } from '../setup/freehold.ts';

const { db, newAccount, operator } = await startFreehold({ ROLES: 'api' });
const pay = (id: string) =>
  operator(
    `mutation { adjustBalance(accountId: "${id}", amountUsd: 5, key: "${id}", reason: "turns") { balanceUsd } }`,
  );

beforeEach(() => db.query('delete from task where lane = $1', ['turns']));

/** Adds tasks of an account that were due some seconds ago. */
const add = (accountId: string, count: number, secondsAgo: number) =>
  db.query(
    `insert into task (id, lane, process, subject, account_id, party, step, run_at)
     select $1 || n, 'turns', 'poll', $1 || n, $1, 'gateway', 'watch', now() - $3::int * interval '1 second'
     from generate_series(1, $2::int) as n`,
    [accountId, count, secondsAgo],
  );

/** The accounts whose tasks a worker takes next. */
const next = async (count: number, ofFreeAccounts: number | null = null, served = {}) =>
  (
    await TAKE_LEASES_IN_TURN.all(db, ['turns', count, 30, 'worker', [], 40, 3, JSON.stringify(served), ofFreeAccounts])
  ).map(({ accountId }) => accountId);

async function addFreeAccounts(): Promise<void> {
  for (let n = 0; n < 50; n++) await add(`acct_free${n}`, 5, 600);
}

it('An account that has paid comes before the overdue tasks of free accounts', async () => {
  const { id } = await newAccount();
  await pay(id);
  await addFreeAccounts();
  await add(id, 1, 0);
  expect(await next(2)).toContain(id);
});

it('A free account with one task comes before free accounts with many', async () => {
  await addFreeAccounts();
  await add('acct_newcomer', 1, 0);
  expect(await next(1)).toEqual(['acct_newcomer']);
});

it('A signalled task comes before all others of its party, and only once', async () => {
  const { id } = await newAccount();
  await pay(id);
  await addFreeAccounts();
  await add(id, 1, 0);
  await db.transaction((tx) => signalTask(tx, 'acct_free71'));
  expect(await next(1)).toEqual(['acct_free7']);
  await db.query(`update task set leased_by = null, run_at = now() where lane = 'turns'`);
  expect(await next(1)).toEqual([id]);
});

it('A party goes on at a worker whose leases have ended without a word', async () => {
  await add('acct_one', 41, 10);
  await db.query(
    `update task set leased_by = 'worker', run_at = now() - interval '1 minute' where lane = 'turns' and id <> 'acct_one41'`,
  );
  expect(await next(3)).toEqual(['acct_one', 'acct_one', 'acct_one']);
});

it('Free accounts together leave places to accounts that have paid', async () => {
  const { id } = await newAccount();
  await pay(id);
  await addFreeAccounts();
  expect(await next(20, 12)).toHaveLength(12);
  expect(await next(8, 12)).toEqual([]);
  await add(id, 1, 0);
  await add('operator', 1, 0);
  expect((await next(8, 12)).sort()).toEqual([id, 'operator']);
  await db.query(
    `update task set run_at = now() where lane = 'turns' and leased_by is not null and account_id like 'acct_free1%'`,
  );
  expect((await next(8, 14)).length).toBeGreaterThan(0);
});

it('Where free accounts have a limit, an account that has paid comes before more of them than a worker remembers', async () => {
  const { id } = await newAccount();
  await pay(id);
  await addFreeAccounts();
  await add(id, 1, 0);
  // Each account is a party of its own. The worker has served the payer, and none of the others.
  await db.query(`update task set party = null where lane = 'turns'`);
  expect(await next(1, null, { [id]: 0 })).not.toEqual([id]);
  expect(await next(1, 40, { [id]: 0 })).toEqual([id]);
});
