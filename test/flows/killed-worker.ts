/**
 * A worker process that kills itself with SIGKILL at a given moment of a given step. The moments are before the step,
 * inside its commit, and after the commit.
 */
import { Database } from '../../entities/database/database.ts';
import { SERVER_PROCESS } from '../../provisioning/servers/task.ts';
import { RefusingDriver } from '../servers/drivers/refusing-driver.ts';
import { die, processesOf, startWorker } from '../servers/server-worker.ts';

const { DATABASE_URL, FOLDER, KILL_STEP, KILL_MOMENT, REFUSE } = process.env;

const db = await Database.open(DATABASE_URL!, { poolSize: 3 });
const processes = processesOf(db, new RefusingDriver(FOLDER!, (REFUSE ?? '').split(',')), 0.1);

let dieAfterCommit = false;
const transaction = db.transaction.bind(db);
db.transaction = async (work) => {
  const result = await transaction(work);
  if (dieAfterCommit) die();
  return result;
};

if (KILL_STEP) {
  const [which, process = SERVER_PROCESS] = KILL_STEP.split(':').reverse();
  const [name, times = '1'] = which!.split(' ');
  let runs = 0;
  const { steps } = processes[process]!;
  const step = steps[name!]!;
  steps[name!] = async (task) => {
    if (++runs < Number(times)) return step(task);
    if (KILL_MOMENT === 'before') die();
    const outcome = await step(task);
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
startWorker(db, processes);
