/** A running worker: how it finds work, keeps its leases, stops, and lives without its database. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Database } from '../../entities/database/database.ts';
import { done, hop, nap } from '../../provisioning/tasks/tasks.ts';
import type { Worker, WorkerOptions } from '../../provisioning/tasks/worker.ts';
import { administer, withDatabase } from '../setup/postgres.ts';
import { queriesOf } from '../setup/queries.ts';
import { effect, effects, engine, newWorker, prepareEngine, read, start } from './engine.ts';

prepareEngine();

const urlOf = (db: Database) => (db.source.options as { url: string }).url;
/** So long that the poll finds nothing. */
const NEVER_SECONDS = 600;
/** A deadline that a busy machine does not miss before the step begins. */
const BEGUN_BY_THEN_SECONDS = 4;

function running(options: Partial<WorkerOptions> = {}, db = engine.db): Worker {
  const worker = newWorker(options, db);
  worker.start();
  onTestFinished(() => worker.stop(0));
  return worker;
}
const WAIT = { timeout: 240_000, interval: 20 };
const finished = () => vi.waitFor(async () => expect(await read()).toBeUndefined(), WAIT);

describe('A running worker', () => {
  it('is woken by the transaction that starts a task, even in another process, and runs the steps at once', async () => {
    const elsewhere = await Database.open(urlOf(engine.db));
    onTestFinished(() => elsewhere.close());
    running({ pollSeconds: NEVER_SECONDS });
    engine.steps = {
      start: async () => hop('second', { commit: effect('first') }),
      second: async ({ data }) =>
        data.rested ? done() : nap(0.05, { data: { rested: true }, commit: effect('second') }),
    };
    await start({}, elsewhere);
    await finished();
    expect(await effects()).toEqual(['first', 'second']);
  });

  it('finds tasks without a wakeup by its poll', async () => {
    running({ pollSeconds: 0.05 });
    engine.steps = { start: async () => done() };
    await engine.db.query(
      `insert into task (id, lane, process, subject, account_id, step) values ('task_1', 'lane', 'process', 'thing', 'acct', 'start')`,
    );
    await finished();
  });

  it('asks for due tasks by one query a poll, however many lanes it has', async () => {
    running({ lanes: Object.fromEntries([...'abcdefghijklmnopqrst'].map((lane) => [lane, 1])), pollSeconds: 0.05 });
    await sleep(300);
    const begun = performance.now();
    const queries = await queriesOf(engine.db, () => sleep(500));
    expect(queries.length).toBeLessThanOrEqual(1 + (performance.now() - begun) / 50);
  });

  it('runs as many tasks at once as its lane allows', async () => {
    let now = 0;
    let most = 0;
    engine.steps = {
      start: async () => {
        most = Math.max(most, ++now);
        await new Promise((resume) => setTimeout(resume, 20));
        now--;
        return done();
      },
    };
    for (let i = 0; i < 12; i++) await start({ subject: `thing ${i}` });
    running({ lanes: { lane: 3 } });
    await vi.waitFor(async () => expect(await engine.db.query('select 1 from task')).toEqual([]), WAIT);
    expect(most).toBe(3);
  });

  it('lets a task take the place of a step that waits for the other side, up to a limit', async () => {
    const { promise: answer, resolve: tell } = Promise.withResolvers<void>();
    let asked = 0;
    engine.steps = {
      start: async ({ waitFor }) => {
        asked++;
        await waitFor(answer);
        return done();
      },
    };
    for (let i = 0; i < 40; i++) await start({ subject: `thing ${i}` });
    const lane = { places: 1, perParty: 40, waiting: 29 };
    const begun = performance.now();
    const looks = vi.spyOn(running({ lanes: { lane } }), 'abandoned');
    await vi.waitFor(() => expect(asked).toBe(30), WAIT);
    // Steps that do not say that they wait keep the place for half a second each.
    expect(performance.now() - begun).toBeLessThan(10_000);
    const before = looks.mock.calls.length;
    await vi.waitFor(() => expect(looks.mock.calls.length).toBeGreaterThan(before + 5), WAIT);
    expect(asked).toBe(30);
    tell();
    await vi.waitFor(async () => expect(await engine.db.query('select 1 from task')).toEqual([]), WAIT);
    expect(asked).toBe(40);
  });

  it('extends the lease of a step that takes longer', async () => {
    const fences: bigint[] = [];
    engine.steps = {
      start: async ({ fence, aborted }) => {
        fences.push(fence);
        const [{ endsAt }] = (await leaseEnd()) as [{ endsAt: Date }];
        await vi.waitFor(
          async () => expect((await leaseEnd())[0]!.endsAt.getTime()).toBeGreaterThan(endsAt.getTime() + 1500),
          WAIT,
        );
        expect(aborted.aborted).toBe(false);
        return done();
      },
    };
    const leaseEnd = () => engine.db.query<{ endsAt: Date }>('select run_at as "endsAt" from task');
    await start();
    running({ leaseSeconds: 1.5, pollSeconds: 0.1 });
    await finished();
    expect(fences).toEqual([1n]);
  });

  it('does not run a task twice at once, even if its lease has ended', async () => {
    let runs = 0;
    engine.steps = {
      start: async () => {
        runs++;
        await engine.db.query(`update task set run_at = now() - interval '1 second'`);
        const before = looks.mock.calls.length;
        await vi.waitFor(() => expect(looks.mock.calls.length).toBeGreaterThan(before + 3), WAIT);
        return done();
      },
    };
    await start();
    const looks = vi.spyOn(running({ pollSeconds: 0.02 }), 'lease');
    await finished();
    expect(runs).toBe(1);
  });

  it.each([
    ['its lease was lost', 'update task set fence = fence + 1', 'The lease was lost.'],
    ['the deadline has passed', `update task set error = 'unchanged'`, 'The deadline has passed.'],
  ])('aborts a step when %s', async (_, change, reason) => {
    let abortedBecause: string | undefined;
    engine.steps = {
      start: async ({ aborted }) => {
        await engine.db.query(change);
        await new Promise((resume) => aborted.addEventListener('abort', resume));
        abortedBecause = aborted.reason.message;
        return done({ commit: effect('late') });
      },
    };
    running({ leaseSeconds: 0.6, pollSeconds: NEVER_SECONDS });
    await start({ deadlineSeconds: reason.includes('deadline') ? BEGUN_BY_THEN_SECONDS : 1000 });
    await vi.waitFor(() => expect(abortedBecause).toBe(reason), WAIT);
  });
});

describe('An aborted step that does not end', () => {
  const lane = { lanes: { lane: 2 }, pollSeconds: 0.05, leaseSeconds: 0.6, graceSeconds: 0.2 };

  it.each([
    ['takes too long', { stepSeconds: 0.2 }, {}, 'select 1', 'The step takes too long.'],
    ['has no time left', {}, { deadlineSeconds: BEGUN_BY_THEN_SECONDS }, 'select 1', 'The deadline has passed.'],
    ['is of a lost lease', {}, {}, 'update task set fence = fence + 1', 'The lease was lost.'],
  ])('and %s gives its place to others; its task is done again, and its late end changes nothing', async (...given) => {
    const [, options, task, meanwhile, reason] = given;
    const { promise: late, resolve: goOn } = Promise.withResolvers<void>();
    const errors = vi.fn();
    let runs = 0;
    engine.steps = {
      start: async ({ subject }) => {
        if (subject === 'other') return done({ commit: effect('other') });
        if (runs++) return done({ commit: effect('again') });
        await engine.db.query(meanwhile);
        await late;
        return done({ commit: effect('late') });
      },
    };
    engine.onExhausted = async () => 'start';
    await start(task);
    const worker = running({ ...lane, ...options, onError: errors, lanes: { lane: 1 } });
    await vi.waitFor(() => expect(worker.abandoned('lane')).toBe(1), WAIT);
    expect(String(errors.mock.calls[0]![0])).toContain(
      `${reason} The step does not end. Abandoned in the lane "lane": 1.`,
    );
    await start({ subject: 'other' });
    await vi.waitFor(async () => expect(await effects()).toContain('other'), WAIT);
    await vi.waitFor(async () => {
      await engine.db.query('update task set run_at = now() where leased_by is null');
      expect(await read()).toBeUndefined();
    }, WAIT);
    goOn();
    await vi.waitFor(() => expect(worker.abandoned()).toBe(0), WAIT);
    expect((await effects()).sort()).toEqual(['again', 'other']);
  });

  it('takes room from other tasks when half of a lane is abandoned, which limits their number', async () => {
    const { promise: late, resolve: goOn } = Promise.withResolvers<void>();
    let [now, most] = [0, 0];
    engine.steps = {
      start: async () => {
        most = Math.max(most, ++now);
        await late;
        return nap(1000);
      },
    };
    for (let i = 0; i < 12; i++) await start({ subject: `thing ${i}` });
    const worker = running({ ...lane, lanes: { lane: 4 }, stepSeconds: 0.2, onError: () => {} });
    await vi.waitFor(() => expect(worker.abandoned('lane')).toBe(6), WAIT);
    // The worker counts them at each check for room.
    const looks = vi.spyOn(worker, 'abandoned');
    await vi.waitFor(() => expect(looks.mock.calls.length).toBeGreaterThan(5), WAIT);
    expect([most, worker.abandoned('lane')]).toEqual([6, 6]);
    goOn();
    await vi.waitFor(async () => {
      await engine.db.query(
        'update task set run_at = now() where leased_by is null and step = $1 and error is not null',
        ['start'],
      );
      expect(await engine.db.query('select 1 from task where error is not null')).toEqual([]);
    }, WAIT);
  });
});

describe('A worker that stops', () => {
  it('finishes the running step, and takes no other', async () => {
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const { promise: told, resolve: tell } = Promise.withResolvers<void>();
    engine.steps = {
      start: async () => {
        begin();
        await told;
        return hop('second', { commit: effect('first') });
      },
    };
    await start();
    const worker = running();
    await begun;
    const stopped = worker.stop();
    tell();
    await stopped;
    expect(await effects()).toEqual(['first']);
    expect(await read()).toMatchObject({ step: 'second', leasedBy: null });
  });

  it('aborts unfinished steps after the grace period, and returns them without counting an attempt', async () => {
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    engine.steps = {
      start: async ({ aborted }) => {
        begin();
        await new Promise((resume) => aborted.addEventListener('abort', resume));
        return done({ commit: effect('late') });
      },
    };
    await start();
    const worker = running();
    await begun;
    await worker.stop(0.05);
    expect(await read()).toMatchObject({ step: 'start', leasedBy: null, attempts: 0 });
    engine.steps = { start: async () => done({ commit: effect('by another') }) };
    running();
    await finished();
    expect(await effects()).toEqual(['by another']);
  });
});

describe('A worker without its database', () => {
  it('neither dies nor retries constantly, and continues when it is back', async () => {
    const away = await Database.open(urlOf(engine.db));
    onTestFinished(() => away.close());
    const name = new URL(urlOf(engine.db)).pathname.slice(1);
    const server = withDatabase(urlOf(engine.db), 'postgres');
    const errors = vi.fn();
    const warnings = vi.spyOn(console, 'warn').mockReturnValue();
    onTestFinished(() => warnings.mockRestore());
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const { promise: gone, resolve: go } = Promise.withResolvers<void>();
    engine.steps = {
      start: async ({ attempts }) => {
        begin();
        if (attempts === 1) await gone;
        return done({ commit: effect('once') });
      },
    };
    await start();
    running({ leaseSeconds: 1, pollSeconds: 0.1, onError: errors }, away);
    await begun;
    await administer(server, `alter database ${name} allow_connections false`);
    await administer(server, `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`);
    go();
    const before = Date.now();
    await vi.waitFor(() => expect(errors.mock.calls.length).toBeGreaterThan(5), WAIT);
    const polls = (Date.now() - before) / 100;
    expect(errors.mock.calls.length).toBeLessThan(polls + 10);
    await administer(server, `alter database ${name} allow_connections true`);
    await finished();
    expect(await effects()).toEqual(['once']);
  });
});
