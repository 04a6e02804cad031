/** The worker in the processes that tests kill. Tests start many of them, so it loads little. */
import type { Database } from '../../entities/database/database.ts';
import { RENEWAL_PROCESS, renewalProcess } from '../../provisioning/servers/billing/renew.ts';
import type { HardwareDriver } from '../../provisioning/servers/drivers/driver.ts';
import { Engines } from '../../provisioning/servers/engines.ts';
import { serverProcess } from '../../provisioning/servers/steps/process.ts';
import { SERVER_LANE, SERVER_PROCESS } from '../../provisioning/servers/task.ts';
import { PERIODIC_LANE } from '../../provisioning/tasks/schedule.ts';
import type { Process } from '../../provisioning/tasks/tasks.ts';
import { Worker } from '../../provisioning/tasks/worker.ts';
import { VAULT } from '../setup/vault.ts';

/** Ends this process as a power failure would. */
export const die = (): void => void process.kill(process.pid, 'SIGKILL');

export function processesOf(db: Database, driver: HardwareDriver, proofSeconds?: number): Record<string, Process> {
  const engines = new Engines(db, { VPS: driver, DEDICATED: driver });
  const proof = proofSeconds === undefined ? undefined : { VPS: proofSeconds, DEDICATED: proofSeconds };
  return {
    [SERVER_PROCESS]: serverProcess({ db, vault: VAULT, engines, pollSeconds: 0.02, proofSeconds: proof }),
    [RENEWAL_PROCESS]: renewalProcess(db),
  };
}

/** Starts a worker whose lease ends soon after its death. */
export function startWorker(db: Database, processes: Record<string, Process>): void {
  const lanes = { [SERVER_LANE]: 4, [PERIODIC_LANE]: 1 };
  new Worker(db, processes, { lanes, leaseSeconds: 1, pollSeconds: 0.1 }).start();
}
