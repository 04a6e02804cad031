/** Callers take turns at the connections of a process. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { forAllCallers, onBehalfOf } from '../../entities/caller.ts';
import type { Database } from '../../entities/database/database.ts';
import { newDatabase } from '../setup/database.ts';
import { atEnd } from '../setup/end.ts';

const db = await newDatabase(atEnd, { poolSize: 4 });
const SLOW_SECONDS = 0.5;
const account = (group: string) => ({ kind: 'account', group }) as const;
const stranger = (group: string) => ({ kind: 'stranger', group }) as const;
const task = (group: string) => ({ kind: 'task', group }) as const;
const slow = () => db.query('select pg_sleep($1)', [SLOW_SECONDS]);
const stuckIn = (one: Database) => () => one.query('select pg_advisory_xact_lock_shared(1)');
/** Does the work while stuck calls wait, which are then answered, too. */
async function whileStuck(
  one: Database,
  begin: (call: () => Promise<unknown>) => Promise<unknown>[],
  work: () => Promise<unknown>,
) {
  let stuck: Promise<unknown>[] = [];
  await one.transaction(async (tx) => {
    await tx.query('select pg_advisory_xact_lock(1)');
    stuck = begin(stuckIn(one));
    await Promise.race([work(), Promise.all(stuck)]);
    for (const call of stuck) expect(await Promise.race([call, 'waits'])).toBe('waits');
  });
  await Promise.all(stuck);
}
/** @returns the names of the works in the order of their ends */
async function endsOf(works: Record<string, Promise<unknown>>): Promise<string[]> {
  const ended: string[] = [];
  await Promise.all(Object.entries(works).map(async ([name, work]) => work.then(() => ended.push(name))));
  return ended;
}

describe('The connections of a process', () => {
  it('answer an account before the slow calls of another, and before those of many strangers', async () => {
    const works: Record<string, Promise<unknown>> = {};
    for (let i = 0; i < 8; i++) works[`slow ${i}`] = onBehalfOf(account('acct_a'), slow);
    for (let i = 0; i < 8; i++) works[`stranger ${i}`] = onBehalfOf(stranger(`192.0.2.${i}`), slow);
    works.quick = onBehalfOf(account('acct_b'), () => db.query('select 1'));
    works.own = db.query('select 1');
    const ended = await endsOf(works);
    expect(ended.indexOf('quick')).toBeLessThan(6);
    expect(ended.indexOf('own')).toBeLessThan(6);
    expect(ended).toHaveLength(18);
  });

  it('do work that callers share before the slow calls of the caller that began it', async () => {
    await whileStuck(
      db,
      (stuck) => Array.from({ length: 6 }, () => onBehalfOf(account('acct_a'), stuck)),
      () => onBehalfOf(account('acct_a'), () => forAllCallers(() => db.query('select 1'))),
    );
  });

  it('answer an account at once while two others read slowly', async () => {
    const wide = await newDatabase(onTestFinished, { poolSize: 10 });
    await whileStuck(
      wide,
      (stuck) =>
        ['acct_a', 'acct_b'].flatMap((slower) => Array.from({ length: 6 }, () => onBehalfOf(account(slower), stuck))),
      () => onBehalfOf(account('acct_c'), () => wide.query('select 1')),
    );
  });

  it('answer others while the tasks of an account wait for a lock', async () => {
    const wide = await newDatabase(onTestFinished, { poolSize: 10 });
    await whileStuck(
      wide,
      (stuck) => Array.from({ length: 12 }, () => onBehalfOf(task('acct_a'), stuck)),
      async () => {
        await onBehalfOf(task('acct_b'), () => wide.query('select 1'));
        await onBehalfOf(account('acct_a'), () => wide.query('select 1'));
      },
    );
  });

  it('let one operation use a second connection at once, because it would wait for itself', async () => {
    const nested = () =>
      db.transaction(async (tx) => {
        await tx.query('select 1');
        return db.query('select 1');
      });
    const all = Array.from({ length: 20 }, () => onBehalfOf(account('acct_a'), nested));
    expect(await Promise.all(all)).toHaveLength(20);
  });

  it('end a statement of a caller that lasts too long, also in a transaction, and none of the service', async () => {
    const limit = async () =>
      (await db.query<{ limit: string }>(`select current_setting('statement_timeout') as limit`))[0]!.limit;
    const inTransaction = () => db.transaction(limit);
    for (let i = 0; i < 8; i++) {
      expect([await limit(), await inTransaction()]).toEqual(['0', '0']);
      const own = await Promise.all([limit(), inTransaction(), limit()]);
      const called = await Promise.all(
        [limit, inTransaction, limit].map((work) =>
          onBehalfOf([account('acct_a'), stranger('192.0.2.1')][i % 2]!, work),
        ),
      );
      const asTask = await onBehalfOf(task('acct_a'), limit);
      expect([...own, ...called, asTask]).toEqual(['0', '0', '0', '20s', '20s', '20s', '0']);
    }
  });

  it('come back after failures', async () => {
    const failing = () => onBehalfOf(account('acct_a'), () => db.query('select 1 / 0'));
    for (let i = 0; i < 8; i++) await expect(failing()).rejects.toThrow('division by zero');
    const rolledBack = () => onBehalfOf(account('acct_a'), () => db.transaction(() => Promise.reject(new Error('no'))));
    for (let i = 0; i < 8; i++) await expect(rolledBack()).rejects.toThrow('no');
    expect(await onBehalfOf(account('acct_a'), () => db.query('select 1 as one'))).toEqual([{ one: 1 }]);
  });
});
