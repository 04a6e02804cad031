/**
 * A worker process of several shops. Each shop has a step, and a moment before it, in its commit or after its commit. A step
 * that begins an order has one more. The work of a shop ends there. When all have come so far, the process kills itself with
 * SIGKILL.
 */
import { Database } from '../../entities/database/database.ts';
import { SERVER_PROCESS } from '../../provisioning/servers/task.ts';
import { RefusingDriver } from '../servers/drivers/refusing-driver.ts';
import { die, processesOf, startWorker } from '../servers/server-worker.ts';

export interface KilledShop {
  url: string;
  folder: string;
  refuse: string;
  step: string;
  moment: 'before' | 'begun' | 'committing' | 'committed';
}
const shops: KilledShop[] = JSON.parse(process.env.SHOPS!);

const ended = new Set<KilledShop>();
/** Stays at the moment until all shops are at theirs. */
function end(shop: KilledShop): Promise<never> {
  ended.add(shop);
  if (ended.size === shops.length) die();
  return new Promise(() => {});
}

for (const shop of shops) {
  const { url, folder, refuse, moment } = shop;
  const db = await Database.open(url, { poolSize: 3 });
  const processes = processesOf(db, new RefusingDriver(folder, [refuse]), 0.1);

  let endAfterCommit = false;
  const transaction = db.transaction.bind(db);
  db.transaction = async (work) => {
    const result = await transaction(work);
    if (endAfterCommit) await end(shop);
    return result;
  };

  const [which, process = SERVER_PROCESS] = shop.step.split(':').reverse();
  const [name, times = '1'] = which!.split(' ');
  let runs = 0;
  const { steps } = processes[process]!;
  const step = steps[name!]!;
  steps[name!] = async (task) => {
    if (++runs < Number(times)) return step(task);
    if (moment === 'before') await end(shop);
    endAfterCommit = moment === 'begun';
    const outcome = await step(task);
    return {
      ...outcome,
      commit: async (tx) => {
        await outcome.commit?.(tx);
        if (moment === 'committing') await end(shop);
        endAfterCommit = moment === 'committed';
      },
    };
  };
  startWorker(db, processes);
}
