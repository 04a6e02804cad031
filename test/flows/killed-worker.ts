/**
 * A worker process that kills itself with SIGKILL at a given moment of a given step. The moments are before the step, after
 * its call to the driver, inside its commit, and after the commit.
 */
import { Database } from '../../entities/database/database.ts';
import { Vault } from '../../entities/secrets.ts';
import { RENEWAL_PROCESS, renewalProcess } from '../../provisioning/servers/billing/renew.ts';
import { serverProcess } from '../../provisioning/servers/steps/process.ts';
import { SERVER_LANE, SERVER_PROCESS } from '../../provisioning/servers/steps/task.ts';
import { PERIODIC_LANE } from '../../provisioning/tasks/schedule.ts';
import type { Process } from '../../provisioning/tasks/tasks.ts';
import { Worker } from '../../provisioning/tasks/worker.ts';
import { RefusingDriver } from '../servers/drivers/refusing-driver.ts';

const { DATABASE_URL, FOLDER, KILL_STEP, KILL_MOMENT, REFUSE } = process.env;

const die = () => process.kill(process.pid, 'SIGKILL');
const db = await Database.open(DATABASE_URL!);
const driver = new RefusingDriver(FOLDER!, (REFUSE ?? '').split(','));
const real = serverProcess({
  db,
  vault: new Vault(Buffer.alloc(32)),
  drivers: { VPS: driver, DEDICATED: driver },
  pollSeconds: 0.02,
  proofSeconds: { VPS: 0.1, DEDICATED: 0.1 },
});

let dieAfterCommit = false;
const transaction = db.transaction.bind(db);
db.transaction = async (work) => {
  const result = await transaction(work);
  if (dieAfterCommit) die();
  return result;
};

const processes: Record<string, Process> = { [SERVER_PROCESS]: real, [RENEWAL_PROCESS]: renewalProcess(db) };
if (KILL_STEP) {
  const [name, process = SERVER_PROCESS] = KILL_STEP.split(':').reverse();
  const { steps } = processes[process]!;
  const step = steps[name!]!;
  steps[name!] = async (task) => {
    if (KILL_MOMENT === 'before') die();
    const outcome = await step(task);
    if (KILL_MOMENT === 'called') die();
    return {
      ...outcome,
      commit: async (tx) => {
        await outcome.commit?.(tx);
        if (KILL_MOMENT === 'committing') die();
        dieAfterCommit = KILL_MOMENT === 'committed';
      },
    };
  };
}
new Worker(db, processes, {
  lanes: { [SERVER_LANE]: 4, [PERIODIC_LANE]: 1 },
  leaseSeconds: 1,
  pollSeconds: 0.1,
}).start();
console.log('working');
