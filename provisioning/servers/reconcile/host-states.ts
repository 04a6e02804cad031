/** Syncs the states of hosts: they are ACTIVE or OFFLINE as their engine says; one that the operator drains stays so. Unknown ones are left alone. */

import type { Transaction } from '../../../entities/database/transaction.ts';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { type HostState, moveHost } from '../../../entities/servers/host.ts';
import type { HostReport } from '../drivers/driver.ts';

export async function syncHostStates(tx: Transaction, driver: string, reports: HostReport[]): Promise<void> {
  const hosts = await tx.query<{ name: string; state: HostState }>('select name, state from host where driver = $1', [
    driver,
  ]);
  for (const { name, state } of hosts) {
    const said = reports.find((report) => report.name === name)?.state;
    if (state === 'ACTIVE' && said === 'offline') await moveHost(tx, name, 'OFFLINE', SYSTEM);
    if (state === 'OFFLINE' && said === 'online') await moveHost(tx, name, 'ACTIVE', SYSTEM);
  }
}
