/** A worker in its own process that kills itself with SIGKILL right before, or after, it writes a certain job. */
import { Database } from '../../../entities/database/database.ts';
import { ManualDriver } from '../../../provisioning/servers/drivers/manual.ts';
import { ManualJobs } from '../../../provisioning/servers/manual-jobs.ts';
import { VAULT } from '../../setup/vault.ts';
import { die, processesOf, startWorker } from '../server-worker.ts';

const { DATABASE_URL, KILL_ACTION, KILL_MOMENT } = process.env;

class MortalJobs extends ManualJobs {
  override async add(...given: Parameters<ManualJobs['add']>): Promise<void> {
    const dies = given[1].action === KILL_ACTION;
    if (dies && KILL_MOMENT === 'before') die();
    await super.add(...given);
    if (dies) die();
  }
}

const db = await Database.open(DATABASE_URL!);
startWorker(db, processesOf(db, new ManualDriver(new MortalJobs(db, VAULT))));
