/** Syncs the states of hosts with the reports of their engine. Draining hosts, and hosts without a report, stay as they are. */
import type { Transaction } from '../../../entities/database/transaction.ts';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { FIND_HOST_STATES, type HostState, moveHost } from '../../../entities/servers/host.ts';
import type { HostReport } from '../drivers/driver.ts';

const STATES: Record<HostReport['state'], HostState> = { online: 'ACTIVE', offline: 'OFFLINE', drained: 'EVACUATED' };

export async function syncHostStates(tx: Transaction, driver: string, reports: HostReport[]): Promise<void> {
  const hosts = await FIND_HOST_STATES.all(tx, [driver]);
  for (const { name, state } of hosts) {
    const reported = reports.find((report) => report.name === name)?.state;
    if (!reported || state === 'DRAINING' || state === STATES[reported]) continue;
    await moveHost(tx, name, STATES[reported], SYSTEM);
  }
}
