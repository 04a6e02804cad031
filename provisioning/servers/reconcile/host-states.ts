/** Syncs the states of hosts with the reports of their engine. Draining hosts, and hosts without a report, stay as they are. */
import type { Transaction } from '../../../entities/database/transaction.ts';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { FIND_HOST_STATES, moveHost } from '../../../entities/servers/host.ts';
import type { HostReport } from '../drivers/driver.ts';

export async function syncHostStates(tx: Transaction, driver: string, reports: HostReport[]): Promise<void> {
  const hosts = await FIND_HOST_STATES.all(tx, [driver]);
  for (const { name, state } of hosts) {
    const reported = reports.find((report) => report.name === name)?.state;
    if (state === 'ACTIVE' && reported === 'offline') await moveHost(tx, name, 'OFFLINE', SYSTEM);
    if (state === 'OFFLINE' && reported === 'online') await moveHost(tx, name, 'ACTIVE', SYSTEM);
  }
}
