/** The steps of a task. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Transaction } from '../../entities/database/transaction.ts';
import { START_TASK_PARAMETERS, startTask, startTaskParameters, startTaskSql } from '../../entities/tasks/start.ts';
import { Conflict, done, hop, nap } from '../../provisioning/tasks/tasks.ts';
import { effect, effects, engine, leaseOne, newWorker, prepareEngine, read, signal, start, TASK } from './engine.ts';

prepareEngine();

describe('A task', () => {
  it('exists if and only if the transaction that started it commits', async () => {
    const rolledBack = engine.db.transaction(async (tx) => {
      await startTask(tx, TASK);
      throw new Error('no');
    });
    await expect(rolledBack).rejects.toThrow('no');
    expect(await read()).toBeUndefined();
    await start();
    expect(await read()).toMatchObject({ step: 'start', state: 'READY', data: {} });
  });

  it('goes from step to step with its data, and is gone at the end', async () => {
    const seen: unknown[] = [];
    engine.steps = {
      start: async ({ data }) => {
        seen.push(data);
        return hop('second', { data: { b: 2 }, commit: effect('started') });
      },
      second: async ({ data }) => {
        seen.push(data);
        return done({ commit: effect('ended') });
      },
    };
    await start({ data: { a: 1 } });
    expect(await engine.worker.drain()).toBe(2);
    expect(seen).toEqual([{ a: 1 }, { a: 1, b: 2 }]);
    expect(await effects()).toEqual(['started', 'ended']);
    expect(await read()).toBeUndefined();
  });

  it('is one per subject: starting another signals the first', async () => {
    const run = vi.fn(async () => nap(1000));
    engine.steps = { start: run };
    await start();
    await start({ step: 'another', data: { other: true } });
    expect(await engine.worker.drain()).toBe(1);
    expect(await read()).toMatchObject({ step: 'start', data: {} });
    await start();
    expect(await engine.worker.drain()).toBe(1);
    expect(await engine.db.query('select 1 from task')).toHaveLength(1);
  });

  it('keeps its earlier time after a start for later, and takes an earlier time', async () => {
    await start({ afterSeconds: 100 });
    await start({ afterSeconds: 1000 });
    expect((await read())!.restSeconds).toBeCloseTo(100, -1);
    await start({ afterSeconds: 10 });
    expect((await read())!.restSeconds).toBeLessThan(11);
  });

  it('can be started by the statement that writes its subject', async () => {
    const statement = `with ordered as (select $1::text as account_id, $2::text as subject where $3::boolean),
      ${startTaskSql('ordered', 4)} select lane from task_started`;
    const parameters = startTaskParameters({ ...TASK, step: 'second' });
    expect(parameters).toHaveLength(START_TASK_PARAMETERS);
    expect(await engine.db.query(statement, ['acct', 'unpaid', false, ...parameters])).toEqual([]);
    expect(await engine.db.query(statement, ['acct', 'paid', true, ...parameters])).toEqual([{ lane: 'lane' }]);
    expect(await read('unpaid')).toBeUndefined();
    expect(await read('paid')).toMatchObject({ step: 'second' });
  });

  it('publishes its lane on the bus after the commit, if it is due', async () => {
    const heard: unknown[] = [];
    const stop = engine.db.bus.listen((change) => heard.push(change));
    await start({ afterSeconds: 100 });
    expect(heard).toEqual([]);
    await start({ subject: 'other' });
    await signal();
    await signal('nothing');
    stop();
    const change = { kind: 'task', accountId: '', id: 'lane' };
    expect(heard).toEqual([change, change]);
  });
});

describe('A step', () => {
  it('naps: it runs again later, or at the next signal', async () => {
    let ready = false;
    engine.steps = { start: async () => (ready ? done() : nap(1000, { data: { looked: true } })) };
    await start();
    expect(await engine.worker.drain()).toBe(1);
    expect(await read()).toMatchObject({ step: 'start', data: { looked: true } });
    expect((await read())!.restSeconds).toBeGreaterThan(900);
    ready = true;
    expect(await engine.worker.drain()).toBe(0);
    await signal();
    expect(await engine.worker.drain()).toBe(1);
    expect(await read()).toBeUndefined();
  });

  it('runs once more at once if a signal came while it ran', async () => {
    engine.steps = { start: async () => nap(1000, { commit: effect('looked') }) };
    await start();
    const lease = await leaseOne();
    await signal();
    expect(await engine.worker.drain()).toBe(0);
    await engine.worker.run(lease);
    expect(await engine.worker.drain()).toBe(1);
    expect(await engine.worker.drain()).toBe(0);
    expect(await effects()).toEqual(['looked', 'looked']);
  });

  it('commits nothing and runs again if it wants to end the task, but a signal came', async () => {
    engine.steps = { start: async () => done({ commit: effect('ended') }) };
    await start();
    const lease = await leaseOne();
    await signal();
    await engine.worker.run(lease);
    expect(await effects()).toEqual([]);
    expect(await engine.worker.drain()).toBe(1);
    expect(await effects()).toEqual(['ended']);
    expect(await read()).toBeUndefined();
  });

  it('rolls back and runs again at once after a conflict, which is no failed attempt', async () => {
    let moved = 2;
    const run = vi.fn();
    engine.steps = {
      start: async ({ attempts }) => {
        run(attempts);
        const commit = async (tx: Transaction) => {
          await effect('written')(tx);
          if (moved-- > 0) throw new Conflict('It moved.');
        };
        return nap(1000, { commit });
      },
    };
    await start();
    expect(await engine.worker.drain()).toBe(1);
    expect(run.mock.calls).toEqual([[1], [1], [1]]);
    expect(await effects()).toEqual(['written']);
    expect(await read()).toMatchObject({ attempts: 0, error: null });
  });

  it('fails an attempt after many conflicts in a row, instead of repeating at once without end', async () => {
    const run = vi.fn(async () =>
      done({
        commit: async () => {
          throw new Conflict('It moved.');
        },
      }),
    );
    engine.steps = { start: run };
    await start();
    expect(await engine.worker.drain()).toBe(1);
    expect(run).toHaveBeenCalledTimes(6);
    expect(await read()).toMatchObject({ attempts: 1, error: 'It moved.' });
    expect((await read())!.restSeconds).toBeGreaterThan(90);
  });
});

describe('A lane', () => {
  it('runs tasks in the order of their times, and ignores other lanes', async () => {
    const order: string[] = [];
    engine.steps = {
      start: async ({ subject }) => {
        order.push(subject);
        return done();
      },
    };
    for (const [subject, secondsAgo] of Object.entries({ b: 20, c: 10, a: 30 })) {
      await start({ subject, afterSeconds: -secondsAgo });
    }
    await start({ subject: 'elsewhere', lane: 'other' });
    expect(await engine.worker.drain()).toBe(3);
    expect(order).toEqual(['a', 'b', 'c']);
    expect(await engine.worker.drain('other')).toBe(1);
  });
});

it('A step has the time of its process, if that names one', async () => {
  const until = async () => (await engine.db.query<{ runAt: Date }>('select run_at from task'))[0]?.runAt.getTime();
  engine.stepSecondsMax = 1000;
  engine.steps = {
    start: async ({ aborted }) => {
      // The worker looks at the time whenever it extends the lease.
      for (const seen = new Set(); seen.size < 5; await sleep(20)) seen.add(await until());
      return done({ commit: effect(String(aborted.aborted)) });
    },
  };
  await start();
  const worker = newWorker({ leaseSeconds: 0.6, stepSeconds: 0.1 });
  worker.start();
  onTestFinished(() => worker.stop(0));
  await vi.waitFor(async () => expect(await read()).toBeUndefined(), { timeout: 240_000, interval: 20 });
  expect(await effects()).toEqual(['false']);
});
