/** The order in which a worker takes the due tasks of one party, such as a payment gateway. */
import { beforeEach, expect, it } from 'vitest';
import { TAKE_LEASES_IN_TURN } from '../../entities/tasks/lease.ts';
import { signalTask } from '../../entities/tasks/start.ts';
import { startFreehold } from '../setup/freehold.ts';

const { db } = await startFreehold({ ROLES: 'api' });
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
const next = async (count: number) =>
  (await TAKE_LEASES_IN_TURN.all(db, ['turns', count, 30, 'worker', [], 40, 3, '{}'])).map(
    ({ accountId }) => accountId,
  );

async function addAccounts(): Promise<void> {
  for (let n = 0; n < 50; n++) await add(`acct_other${n}`, 5, 600);
}

it('An account with one task comes before accounts with many', async () => {
  await addAccounts();
  await add('acct_newcomer', 1, 0);
  expect(await next(1)).toEqual(['acct_newcomer']);
});

it('A signalled task comes before all others of its party, and only once', async () => {
  await addAccounts();
  await add('acct_newcomer', 1, 0);
  await db.transaction((tx) => signalTask(tx, 'acct_other71'));
  expect(await next(1)).toEqual(['acct_other7']);
  await db.query(`update task set leased_by = null, run_at = now() where lane = 'turns'`);
  expect(await next(1)).toEqual(['acct_newcomer']);
});

it('A party goes on at a worker whose leases have ended without a word', async () => {
  await add('acct_one', 41, 10);
  await db.query(
    `update task set leased_by = 'worker', run_at = now() - interval '1 minute' where lane = 'turns' and id <> 'acct_one41'`,
  );
  expect(await next(3)).toEqual(['acct_one', 'acct_one', 'acct_one']);
});
