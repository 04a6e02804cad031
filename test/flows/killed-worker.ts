/**
 * A worker in a process of its own that kills itself with SIGKILL at a given moment of a given step: before it, after
 * its call to the driver, inside its commit, or after the commit.
 */
import { Database } from '../../entities/database.ts';
import { Vault } from '../../entities/secrets.ts';
import { serverProcess } from '../../provisioning/servers/process.ts';
import { SERVER_LANE, SERVER_PROCESS } from '../../provisioning/servers/task.ts';
import { Worker } from '../../provisioning/worker.ts';
import { RefusingDriver } from './refusing-driver.ts';

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

const steps = { ...real.steps };
if (KILL_STEP) {
  steps[KILL_STEP] = async (task) => {
    if (KILL_MOMENT === 'before') die();
    const outcome = await real.steps[KILL_STEP]!(task);
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
new Worker(
  db,
  { [SERVER_PROCESS]: { ...real, steps } },
  { lanes: { [SERVER_LANE]: 4 }, leaseSeconds: 1, pollSeconds: 0.1 },
).start();
console.log('working');
