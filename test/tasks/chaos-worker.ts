/**
 * A worker in a separate process that chaos.test.ts kills. Each order has four steps, and each step has one effect. Only the
 * engine prevents a second effect. A fault point kills the process between the write of an effect and its commit. A mutant
 * is an engine without one of its two guarantees.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Database } from '../../entities/database/database.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { done, hop, type LeasedTask, type Outcome } from '../../provisioning/tasks/tasks.ts';
import { Worker } from '../../provisioning/tasks/worker.ts';

export interface ChaosWorkerOptions {
  url: string;
  leaseSeconds: number;
  concurrency: number;
  /** The number of the commit during which the process kills itself. */
  dieAtCommit: number;
  /** `unfenced` commits without its lease; `outside` writes effects outside of the transaction. */
  mutant: 'unfenced' | 'outside' | undefined;
}
const STEP_MS = 80;
/** Each step of that number fails. */
const FAILING = 20;

const options: ChaosWorkerOptions = JSON.parse(process.argv[2]!);

class UnfencedWorker extends Worker {
  protected override release(tx: Transaction, task: LeasedTask, outcome: Outcome): Promise<void> {
    return super.release(tx, task, outcome).catch(() => {});
  }
}

// If the process loses the database during its start, it ends, and the test starts another. Later, no loss may end it.
const giveUp = () => process.exit(0);
process.on('uncaughtException', giveUp);
const db = await Database.open(options.url).catch(giveUp);
process.off('uncaughtException', giveUp);

let begun = 0;
let committing = 0;

const step = (what: string, next?: string) => async (task: LeasedTask) => {
  await sleep(STEP_MS);
  if (++begun % FAILING === 0) throw new Error('The driver failed.');
  const commit = async (tx: Transaction) => {
    const place = options.mutant === 'outside' ? db : tx;
    await place.query('insert into effect (subject, what) values ($1, $2)', [task.subject, what]);
    if (++committing === options.dieAtCommit) process.kill(process.pid, 'SIGKILL');
  };
  return next ? hop(next, { commit }) : done({ commit });
};

const worker = new (options.mutant === 'unfenced' ? UnfencedWorker : Worker)(
  db,
  {
    order: {
      lane: 'orders',
      attemptsMax: 1000,
      backoffSeconds: () => 0.2,
      steps: {
        start: step('claimed', 'create'),
        create: step('created', 'prove'),
        prove: step('proved', 'bill'),
        bill: step('billed'),
      },
    },
  },
  {
    lanes: { orders: options.concurrency },
    leaseSeconds: options.leaseSeconds,
    pollSeconds: 0.5,
    onError: () => {},
  },
);

process.on('SIGTERM', () => void worker.stop(5).then(() => process.exit(0)));
process.on('disconnect', () => process.exit(0));
worker.start();
process.send!({ id: worker.id });
