/**
 * Three worker processes work on orders while the test disturbs them. It kills them, freezes them for longer than their
 * leases, stops them, and disconnects them from the database. They also kill themselves during commits. Every order must have
 * its four effects once and in order. An order that was rolled back may have none. Two mutants of the engine, each without one
 * of its guarantees, get the same disturbances. The test must find them, which proves that it can fail.
 *
 * CHAOS_SEED repeats the choices of a run, as far as the scheduling of processes allows.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import type { Database } from '../../entities/database/database.ts';
import { isConnectionLost } from '../../entities/database/transaction.ts';
import { startTask } from '../../entities/tasks/start.ts';
import { asSuperuser, newDatabase } from '../setup/database.ts';
import { administer } from '../setup/postgres.ts';
import { say } from '../setup/say.ts';
import type { ChaosWorkerOptions } from './chaos-worker.ts';

const WORKERS = 3;
const CONCURRENCY = 4;
const LEASE_SECONDS = 1;
/** The time for a worker to begin steps, and the time for others to take them over. */
const [BUSY_MS, TAKEN_OVER_MS] = [15_000, 15_000];
const EFFECTS = 'claimed,created,proved,billed';
const DISTURBANCES = ['freeze', 'kill', 'disconnect', 'stop', 'kill', 'freeze', 'kill', 'freeze'] as const;
type Disturbance = (typeof DISTURBANCES)[number];

/** Returns numbers between 0 and 1, the same ones for the same seed. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Keeps a number of worker processes alive and counts their ends. */
class Crew {
  /** The worker id of each process that works. */
  readonly working = new Map<ChildProcess, string>();
  readonly ends: Record<string, number> = {};
  /** The output of processes that ended with an error. */
  readonly lastWords: string[] = [];
  readonly #options: () => ChaosWorkerOptions;
  readonly #all = new Set<ChildProcess>();
  #over = false;

  constructor(options: () => ChaosWorkerOptions) {
    this.#options = options;
    for (let i = 0; i < WORKERS; i++) this.#spawn();
  }

  #spawn() {
    const child = fork(join(import.meta.dirname, 'chaos-worker.ts'), [JSON.stringify(this.#options())], {
      execArgv: [],
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
    });
    this.#all.add(child);
    let words = '';
    child.stderr!.on('data', (chunk) => (words += chunk));
    child.on('close', (code) => code && !this.#over && this.lastWords.push(words));
    child.on('message', ({ id }: { id: string }) => this.working.set(child, id));
    child.on('exit', (code, signal) => {
      this.#all.delete(child);
      this.working.delete(child);
      if (this.#over) return;
      const end = signal ?? `code ${code}`;
      this.ends[end] = (this.ends[end] ?? 0) + 1;
      this.#spawn();
    });
  }

  /** Waits until at least this number works. */
  async have(count: number) {
    while (this.working.size < count) await sleep(20);
  }

  end() {
    this.#over = true;
    for (const child of this.#all) child.kill('SIGKILL');
  }
}

class Chaos {
  readonly db: Database;
  readonly url: string;
  readonly crew: Crew;
  readonly random: () => number;
  rolledBack = 0;
  /** Leases of frozen workers that others took over. */
  takenOver = 0;

  private constructor(db: Database, seed: number, mutant: ChaosWorkerOptions['mutant']) {
    this.db = db;
    this.url = (db.source.options as { url: string }).url;
    this.random = randomOf(seed);
    this.crew = new Crew(() => ({
      url: this.url,
      leaseSeconds: LEASE_SECONDS,
      concurrency: CONCURRENCY,
      dieAtCommit: Math.floor((mutant === 'outside' ? 10 : 50) * (1 + this.random())),
      mutant,
    }));
  }

  static async begin(seed: number, mutant?: ChaosWorkerOptions['mutant']): Promise<Chaos> {
    const db = await newDatabase();
    await asSuperuser(db, 'create table placed (subject text not null); grant all on placed to public');
    await asSuperuser(
      db,
      `create table effect (n int generated always as identity, subject text not null, what text not null);
        grant all on effect to public`,
    );
    const chaos = new Chaos(db, seed, mutant);
    onTestFinished(() => chaos.crew.end());
    return chaos;
  }

  /** Works even if this process loses its connection, which may happen late. */
  async count(of: string): Promise<number> {
    for (;;) {
      const counted = this.db.query<{ count: number }>(`select count(*)::int as count from ${of}`);
      const [row] = await counted.catch((error: unknown) => {
        if (!isConnectionLost(error)) throw error;
        return [];
      });
      if (row) return row.count;
    }
  }

  /** Returns the number of duplicate effects in the database. */
  duplicates(): Promise<number> {
    return this.count('(select 1 from effect group by subject, what having count(*) > 1) as duplicate');
  }

  /** Places more orders than the workers can handle, and rolls one of ten back. */
  async order(over: AbortSignal): Promise<void> {
    for (let number = 0; !over.aborted; await sleep(10)) {
      const waiting = await this.count('task');
      if (waiting > 2 * WORKERS * CONCURRENCY) continue;
      const fails = this.random() < 0.1;
      const subject = `${fails ? 'rolled back' : 'order'} ${number++}`;
      await this.db
        .transaction(async (tx) => {
          await tx.query('insert into placed values ($1)', [subject]);
          await startTask(tx, { lane: 'orders', process: 'order', subject, accountId: 'acct' });
          if (fails) throw new Error('rolled back');
        })
        .catch(() => {}); // the table shows whether the order exists
      if (fails) this.rolledBack++;
    }
  }

  async disturb(disturbance: Disturbance): Promise<void> {
    await this.crew.have(disturbance === 'disconnect' ? WORKERS : 2);
    const victims = [...this.crew.working];
    const [victim, id] = victims[Math.floor(this.random() * victims.length)]!;
    if (disturbance === 'kill') victim.kill('SIGKILL');
    if (disturbance === 'stop') victim.kill('SIGTERM');
    if (disturbance === 'freeze') await this.#freeze(victim, id);
    if (disturbance === 'disconnect') await this.#disconnect();
  }

  /** Freezes a worker during its steps until others take them over. */
  async #freeze(victim: ChildProcess, id: string) {
    const held = () => this.count(`task where leased_by = '${id}'`);
    for (const end = Date.now() + BUSY_MS; Date.now() < end && this.crew.working.has(victim); await sleep(5))
      if ((await held()) >= CONCURRENCY / 2) break;
    victim.kill('SIGSTOP');
    const before = await held();
    for (const end = Date.now() + TAKEN_OVER_MS; Date.now() < end && (await held()) > 0; ) await sleep(20);
    this.takenOver += before - (await held());
    victim.kill('SIGCONT');
  }

  /** Disconnects all processes, including this one. */
  async #disconnect() {
    const server = new URL(this.url);
    const name = server.pathname.slice(1);
    server.pathname = '/postgres';
    await administer(server.href, `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`);
  }

  async finish(): Promise<void> {
    while ((await this.count('task')) > 0) await sleep(50);
  }

  /** Returns the faults: orders without exactly their effects, and effects without an order. */
  wrong(): Promise<unknown[]> {
    return this.db.query(
      `select subject, effects from (select distinct subject from placed) as placed
        full join (select subject, string_agg(what, ',' order by n) as effects from effect group by subject) as effect using (subject)
        where effects is distinct from '${EFFECTS}' or subject not in (select subject from placed)`,
    );
  }
}

/** Disturbances that reveal each mutant. The test repeats them, because one may hit no worker during a step. */
const MUTANTS = {
  unfenced: Array<Disturbance>(16).fill('freeze'),
  outside: Array<Disturbance>(16).fill('kill'),
} as const;

/** Runs the disturbances until the expected fault appears, or all of them, and then until the workers have done enough. */
async function run(
  chaos: Chaos,
  disturbances: readonly Disturbance[] = DISTURBANCES,
  wrong: () => Promise<boolean> = async () => false,
  enough: () => Promise<boolean> = async () => true,
) {
  const over = new AbortController();
  onTestFinished(() => over.abort());
  const ordering = chaos.order(over.signal);
  for (const disturbance of disturbances) {
    await chaos.disturb(disturbance);
    await sleep(200 + chaos.random() * 400);
    if (await wrong()) break;
  }
  while (!(await enough())) await sleep(100);
  over.abort();
  await ordering;
}

const SEED = Number(process.env.CHAOS_SEED ?? Date.now() % 1_000_000);
const TIMEOUT_MS = 400_000;

it(
  'every order has its four effects, once and in order, under all disturbances of the workers',
  async () => {
    const chaos = await Chaos.begin(SEED);
    const { crew } = chaos;
    const kills = DISTURBANCES.filter((disturbance) => disturbance === 'kill').length;
    // A busy machine takes longer.
    await run(chaos, DISTURBANCES, undefined, async () => {
      const [died, orders] = [(crew.ends.SIGKILL ?? 0) > kills, await chaos.count('placed')];
      return died && orders > 50 && chaos.rolledBack > 0;
    });
    await chaos.finish();
    const { rolledBack, takenOver } = chaos;
    const orders = await chaos.count('placed');
    const figures = `orders ${orders}, rolled back ${rolledBack}, taken over ${takenOver}`;
    say(`chaos: seed ${SEED}, ${figures}, ${JSON.stringify(crew.ends)}`);
    expect(await chaos.wrong()).toEqual([]);
    expect({ orders, rolledBack, takenOver }).toEqual({
      orders: expect.toSatisfy((count: number) => count > 50),
      rolledBack: expect.toSatisfy((count: number) => count > 0),
      takenOver: expect.toSatisfy((count: number) => count > 0),
    });
    // The test, the fault point or a normal stop ended each process. No other cause did.
    expect(crew.lastWords).toEqual([]);
    expect(Object.keys(crew.ends).filter((end) => end !== 'SIGKILL' && end !== 'code 0')).toEqual([]);
    expect(crew.ends.SIGKILL).toBeGreaterThan(kills);
  },
  TIMEOUT_MS,
);

it.each(['unfenced', 'outside'] as const)(
  'the test finds the mutant %s of the engine: it has duplicate effects',
  async (mutant) => {
    const chaos = await Chaos.begin(SEED, mutant);
    await run(chaos, MUTANTS[mutant], async () => (await chaos.duplicates()) > 0);
    const duplicates = await chaos.duplicates();
    say(`chaos: seed ${SEED}, mutant ${mutant}: ${duplicates} effects twice, of ${await chaos.count('placed')} orders`);
    expect(duplicates).toBeGreaterThan(0);
  },
  TIMEOUT_MS,
);
