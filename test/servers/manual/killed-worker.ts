/** A worker in its own process that kills itself with SIGKILL right before, or after, it writes a certain job. */
import { Database } from '../../../entities/database/database.ts';
import { Vault } from '../../../entities/secrets.ts';
import { ManualDriver } from '../../../provisioning/servers/drivers/manual.ts';
import { ManualJobs } from '../../../provisioning/servers/manual-jobs.ts';
import { serverProcess } from '../../../provisioning/servers/steps/process.ts';
import { SERVER_LANE, SERVER_PROCESS } from '../../../provisioning/servers/steps/task.ts';
import { Worker } from '../../../provisioning/tasks/worker.ts';
import { VAULT_KEY } from '../bare-metal/room.ts';

const { DATABASE_URL, KILL_ACTION, KILL_MOMENT } = process.env;

class MortalJobs extends ManualJobs {
  override async add(...given: Parameters<ManualJobs['add']>): Promise<void> {
    const dies = given[1].action === KILL_ACTION;
    if (dies && KILL_MOMENT === 'before') process.kill(process.pid, 'SIGKILL');
    await super.add(...given);
    if (dies) process.kill(process.pid, 'SIGKILL');
  }
}

const db = await Database.open(DATABASE_URL!);
const vault = new Vault(VAULT_KEY);
const driver = new ManualDriver(new MortalJobs(db, vault));
const process_ = serverProcess({ db, vault, drivers: { VPS: driver, DEDICATED: driver }, pollSeconds: 0.05 });
new Worker(
  db,
  { [SERVER_PROCESS]: process_ },
  { lanes: { [SERVER_LANE]: 4 }, leaseSeconds: 1, pollSeconds: 0.1 },
).start();
