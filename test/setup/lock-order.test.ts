/** The recorder of locks works, because it decides whether a run of the tests passes. */
import { describe, expect, it } from 'vitest';
import { LOCK_ORDER, UNDER_ACCOUNT } from '../../entities/database/lock-order.ts';
import { lockAvailable, openBalance } from '../../entities/payments/ledger.ts';
import { signalTask, startTask } from '../../entities/tasks/start.ts';
import { newDatabase } from './database.ts';
import { locksOf, reportsOf } from './lock-order.ts';

const task = (subject: string) => ({ lane: 'lane', process: 'process', subject, accountId: '' });

describe('A transaction', () => {
  it('is reported if it locks a task before an account, but not the other way round', async () => {
    const db = await newDatabase();
    await db.transaction((tx) => openBalance(tx, 'acct_1'));
    await db.transaction((tx) => startTask(tx, task('one')));
    const wrong = await reportsOf(() =>
      db.transaction(async (tx) => {
        await signalTask(tx, 'one');
        await lockAvailable(tx, 'acct_1');
      }),
    );
    expect(wrong).toHaveLength(1);
    expect(wrong[0]).toMatch(/^balance after task: .*available_micros.* AFTER .*update task/);
    const right = await reportsOf(() =>
      db.transaction(async (tx) => {
        await lockAvailable(tx, 'acct_1');
        await signalTask(tx, 'one');
      }),
    );
    expect(right).toEqual([]);
  });

  it('is reported if it locks rows of one table against the order of their keys', async () => {
    const db = await newDatabase();
    for (const subject of ['a', 'b']) await db.transaction((tx) => startTask(tx, task(subject)));
    const inOrder = (...subjects: string[]) =>
      reportsOf(() =>
        db.transaction(async (tx) => {
          for (const subject of subjects) await signalTask(tx, subject);
        }),
      );
    expect(await inOrder('a', 'b')).toEqual([]);
    expect((await inOrder('b', 'a'))[0]).toMatch(/^task after task/);
  });

  it('does not count locks that a savepoint has released', async () => {
    const db = await newDatabase();
    await db.transaction((tx) => openBalance(tx, 'acct_1'));
    await db.transaction((tx) => startTask(tx, task('one')));
    const reports = await reportsOf(() =>
      db.transaction(async (tx) => {
        const undone = tx.attempt(async (inner) => {
          await signalTask(inner, 'one');
          throw new Error('undone');
        });
        await expect(undone).rejects.toThrow('undone');
        await lockAvailable(tx, 'acct_1');
      }),
    );
    expect(reports).toEqual([]);
  });
});

describe('The tables that a statement locks', () => {
  const tables = (sql: string) => locksOf(sql).map(({ table }) => table);

  it.each([
    ['select 1 from server where id = $1', []],
    ['select 1 from server where id = $1 for update', ['server']],
    ['update task set signals = 1 where subject = $1', ['task']],
    ['delete from placement where order_number = $1', ['placement']],
    ['insert into event (id) values ($1)', []],
    ['insert into task (id) values ($1) on conflict do nothing', []],
    ['insert into task (id) values ($1) on conflict (subject) do update set signals = 1', ['task']],
    ['with mine as (select 1 from host for update) update task set id = 1 from mine', ['host', 'task']],
    ['with gone as (delete from placement returning *) update host set machines = 0 from gone', ['placement', 'host']],
  ])('%s', (sql, expected) => {
    expect(tables(sql)).toEqual(expected);
  });
});

it('every table has one place in the order at most', () => {
  const ordered = LOCK_ORDER.map(([table]) => table);
  expect(new Set(ordered).size).toBe(ordered.length);
  expect(ordered.filter((table) => UNDER_ACCOUNT.has(table))).toEqual([]);
});
