/** Tasks whose step fails, whose deadline passes, or whose worker loses its lease. The tests do not wait. */
import { describe, expect, it, vi } from 'vitest';
import { done, hop, nap, type Outcome } from '../../provisioning/tasks/tasks.ts';
import { effect, effects, engine, later, leaseOne, newWorker, prepareEngine, read, signal, start } from './engine.ts';

prepareEngine();

describe('A failing step', () => {
  const failing = async (): Promise<Outcome> => {
    throw new Error('driver down');
  };

  it('is retried with growing pauses, then dead, and continues with the same step after a signal', async () => {
    engine.steps = { start: failing };
    engine.onExhausted = async (task, tx, error) => void (await effect(`${task.subject} dead: ${error}`)(tx));
    await start();
    for (const attempts of [1, 2]) {
      expect(await engine.worker.drain()).toBe(1);
      expect(await read()).toMatchObject({ attempts, state: 'READY', error: 'driver down' });
      expect((await read())!.restSeconds).toBeCloseTo(100 * attempts, -1);
      await later();
    }
    expect(await engine.worker.drain()).toBe(1);
    expect(await read()).toMatchObject({ attempts: 3, state: 'DEAD', error: 'driver down' });
    expect(await effects()).toEqual(['thing dead: driver down']);
    await later();
    expect(await engine.worker.drain()).toBe(0);

    engine.steps = { start: async () => done({ commit: effect('ended') }) };
    await signal();
    expect(await engine.worker.drain()).toBe(1);
    expect(await effects()).toEqual(['thing dead: driver down', 'ended']);
  });

  it('has fresh attempts at the next step', async () => {
    engine.steps = { start: failing, second: failing };
    await start();
    await engine.worker.drain();
    await later();
    engine.steps.start = async () => hop('second');
    await engine.worker.drain();
    expect(await read()).toMatchObject({ step: 'second', attempts: 1 });
  });

  it('commits nothing of a failed commit', async () => {
    engine.steps = { start: async () => hop('second', { commit: (tx) => effect('half')(tx).then(failing) }) };
    await start();
    await engine.worker.drain();
    expect(await effects()).toEqual([]);
    expect(await read()).toMatchObject({ step: 'start', attempts: 1, error: 'driver down' });
  });

  it('is retried once more after a signal during the last attempt', async () => {
    engine.steps = { start: failing };
    await start();
    await engine.db.query('update task set attempts = 2');
    const lease = await leaseOne();
    expect(lease.task.attempts).toBe(3);
    await signal();
    await engine.worker.run(lease);
    expect(await read()).toMatchObject({ state: 'READY', attempts: 0 });
    expect(await engine.worker.drain()).toBe(1);
  });

  it('is given up once, and can continue with another step instead of being dead', async () => {
    engine.steps = { start: failing, refund: async () => done({ commit: effect('refunded') }) };
    engine.onExhausted = async (_task, tx) => {
      await effect('given up')(tx);
      return 'refund';
    };
    await start({ deadlineSeconds: 10_000 });
    await engine.db.query('update task set attempts = 2');
    expect(await engine.worker.drain()).toBe(2);
    expect(await effects()).toEqual(['given up', 'refunded']);
  });

  it('can be retried without end, with pauses, if it continues with itself', async () => {
    engine.steps = { start: failing };
    engine.onExhausted = async ({ step }) => step;
    await start();
    await engine.db.query('update task set attempts = 2');
    expect(await engine.worker.drain()).toBe(1);
    expect(await read()).toMatchObject({ state: 'READY', step: 'start', attempts: 0 });
    expect((await read())!.restSeconds).toBeGreaterThan(200);
  });

  it('is given up again later if giving up fails, which commits nothing', async () => {
    engine.steps = { start: failing };
    engine.onExhausted = async (_task, tx) => {
      await effect('given up')(tx);
      throw new Error('no refund');
    };
    await start();
    await engine.db.query('update task set attempts = 2');
    expect(await engine.worker.drain()).toBe(1);
    expect(await read()).toMatchObject({
      state: 'READY',
      error: 'Giving up failed: no refund Before: driver down',
    });
    engine.onExhausted = async (_task, tx) => void (await effect('given up')(tx));
    await later();
    expect(await engine.worker.drain()).toBe(1);
    expect(await read()).toMatchObject({ state: 'DEAD' });
    expect(await effects()).toEqual(['given up']);
  });

  it('counts an attempt that killed its worker, and is given up without another run', async () => {
    const run = vi.fn(async () => done());
    engine.steps = { start: run };
    await start();
    for (let death = 0; death < 3; death++, await later()) await leaseOne();
    expect(await engine.worker.drain()).toBe(1);
    expect(run).not.toHaveBeenCalled();
    expect(await read()).toMatchObject({ state: 'DEAD', error: 'None of 3 attempts ended.' });
  });

  it('may have any error, even one that PostgreSQL cannot store', async () => {
    engine.steps = {
      start: async () => {
        throw `\0${'x'.repeat(10_000)}`;
      },
    };
    await start();
    await engine.worker.drain();
    expect((await read())!.error).toBe('x'.repeat(500));
  });
});

describe('A dead task', () => {
  it('is replaced by a new task of its subject', async () => {
    engine.steps = {};
    await start({ step: 'first', data: { old: true } });
    await engine.db.query(
      `update task set state = 'DEAD', error = 'old', attempts = 3, run_at = now() - interval '1 day'`,
    );
    await start({ step: 'second', data: { new: true }, afterSeconds: 100 });
    expect(await read()).toMatchObject({
      step: 'second',
      data: { new: true },
      state: 'READY',
      attempts: 0,
      error: null,
    });
    expect((await read())!.restSeconds).toBeGreaterThan(90);
  });
});

describe('A deadline', () => {
  const overdue = () => engine.db.query(`update task set deadline_at = now() - interval '1 second'`);

  it('ends a task that would wait without end, and ends it in time', async () => {
    engine.steps = { start: async () => nap(100_000), refund: async () => nap(100_000) };
    engine.onExhausted = async (_task, tx, error) => {
      await effect(error)(tx);
      return 'refund';
    };
    await start({ deadlineSeconds: 500 });
    await engine.worker.drain();
    expect((await read())!.restSeconds).toBeCloseTo(500, -1);
    await overdue();
    await later();
    expect(await engine.worker.drain()).toBe(2);
    expect(await effects()).toEqual(['The deadline has passed.']);
    expect(await read()).toMatchObject({ step: 'refund' });
    await later();
    expect(await engine.worker.drain()).toBe(1);
  });

  it('does not hinder a dead task after a signal', async () => {
    engine.steps = { start: async () => nap(1000) };
    await start();
    await overdue();
    expect(await engine.worker.drain()).toBe(1);
    expect(await read()).toMatchObject({ state: 'DEAD', error: 'The deadline has passed.' });
    await signal();
    await engine.worker.drain();
    expect(await read()).toMatchObject({ state: 'READY', error: null });
  });
});

describe('A lease', () => {
  it('belongs to one worker: two workers never run one subject at once', async () => {
    const running = new Set<string>();
    let overlaps = 0;
    // A worker runs one step at a time, so the first step waits for another worker.
    const two = Promise.withResolvers<void>();
    engine.steps.start = async ({ subject, data }) => {
      if (running.has(subject)) overlaps++;
      running.add(subject);
      if (running.size > 1) two.resolve();
      await two.promise;
      await new Promise((resume) => setImmediate(resume));
      running.delete(subject);
      const rounds = Number(data.rounds);
      return rounds ? hop('start', { data: { rounds: rounds - 1 }, commit: effect(subject) }) : done();
    };
    for (const subject of ['a', 'b', 'c']) await start({ subject, data: { rounds: 10 } });
    // A worker with more places could take all subjects before the others look.
    const workers = [1, 2, 3, 4].map(() => newWorker({ lanes: { lane: 1 } }));
    const ran = await Promise.all(workers.map((one) => one.drain('lane')));
    await engine.worker.drain();
    expect(overlaps).toBe(0);
    expect(ran.filter((count) => count > 0).length).toBeGreaterThan(1);
    expect((await effects()).sort()).toEqual(['a', 'b', 'c'].flatMap((subject) => Array(10).fill(subject)));
  });

  it('commits nothing after its loss, before and after the end of the other one', async () => {
    const other = newWorker();
    engine.steps = {
      start: async ({ fence }) => hop('second', { commit: effect(`by ${fence}`) }),
      second: async () => done(),
    };
    await start();
    const lost = await leaseOne();
    await later();
    const held = await leaseOne(other);
    await engine.worker.run(lost);
    expect(await effects()).toEqual([]);
    await other.run(held);
    await engine.worker.run(lost);
    expect(await effects()).toEqual(['by 2']);
    await other.drain();
    await engine.worker.run(lost);
    expect(await effects()).toEqual(['by 2']);
    expect(await read()).toBeUndefined();
  });

  it('commits only the second time if the same worker loses it and takes it again', async () => {
    engine.steps = { start: async ({ fence }) => done({ commit: effect(`by ${fence}`) }) };
    await start();
    const lost = await leaseOne();
    await later();
    const held = await leaseOne();
    await engine.worker.run(lost);
    expect(await effects()).toEqual([]);
    await engine.worker.run(held);
    expect(await effects()).toEqual(['by 2']);
  });

  it('cannot fail the task after its loss', async () => {
    const other = newWorker();
    engine.steps = {
      start: async () => {
        throw new Error('late');
      },
    };
    await start();
    await engine.db.query('update task set attempts = 2');
    const lost = await leaseOne();
    await later();
    await engine.db.query('update task set attempts = 0');
    await leaseOne(other);
    await engine.worker.run(lost);
    expect(await read()).toMatchObject({ state: 'READY', attempts: 1, error: null });
  });

  it('does not write again after its release, as after a commit without an answer', async () => {
    engine.steps = { start: async () => hop('second', { commit: effect('once') }), second: async () => done() };
    await start();
    const lease = await leaseOne();
    await engine.worker.run(lease);
    await engine.worker.run(lease);
    expect(await effects()).toEqual(['once']);
    expect(await read()).toMatchObject({ step: 'second', attempts: 0 });
  });
});

describe('A task that this version does not know', () => {
  it.each([
    ['a process', { process: 'future' }, 'This version has no process "future".'],
    ['a step', { step: 'toString' }, 'The process "process" has no step "toString" in this version.'],
  ])('%s: it is put aside with the reason, for ever, and is no attempt', async (_, task, error) => {
    await start(task);
    for (let round = 0; round < 5; round++) {
      expect(await engine.worker.drain()).toBe(1);
      expect(await read()).toMatchObject({ state: 'READY', attempts: 0, error });
      expect((await read())!.restSeconds).toBeGreaterThan(10);
      await later();
    }
  });

  it('a process whose deadline has passed, which rests all the same', async () => {
    await start({ process: 'future', deadlineSeconds: -1 });
    expect(await engine.worker.drain()).toBe(1);
    expect((await read())!.restSeconds).toBeGreaterThan(10);
  });
});
