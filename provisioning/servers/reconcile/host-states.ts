/** Compares hosts with the reports of their engine. */
import type { Transaction } from '../../../entities/database/transaction.ts';
import { SYSTEM } from '../../../entities/history/audit.ts';
import {
  FIND_HOSTS_OF_ENGINE,
  type HostState,
  moveHost,
  NOTE_HOST_TROUBLES,
  type SoldHost,
} from '../../../entities/servers/host.ts';
import type { HostReport, Observation } from '../drivers/driver.ts';
import { type Found, storable } from './findings.ts';

const STATES: Record<HostReport['state'], HostState> = { online: 'ACTIVE', offline: 'OFFLINE' };
const NO_REASON = 'The engine reports the host offline, and says no more.';

/**
 * Syncs the states of hosts, and notes why they are offline. Hosts that the operator drains or evacuates, and those without a
 * report, keep their state.
 */
export async function syncHostStates(tx: Transaction, engine: string, reports: HostReport[]): Promise<void> {
  const told = reports.map(({ name, state, trouble = NO_REASON }) => ({
    name: storable(name),
    trouble: state === 'online' ? null : storable(trouble),
  }));
  await NOTE_HOST_TROUBLES.all(tx, [engine, JSON.stringify(told)]);
  const hosts = await FIND_HOSTS_OF_ENGINE.all(tx, [engine]);
  for (const { name, state } of hosts) {
    const reported = reports.find((report) => report.name === name)?.state;
    if (!reported || state === 'DRAINING' || state === 'EVACUATING' || state === STATES[reported]) continue;
    await moveHost(tx, name, STATES[reported], SYSTEM);
  }
}

/**
 * Findings about hosts of VPS that the operator sells as larger than they are. The overcommit of vCPUs is the operator's. Others
 * tell of pools without room for a rebuild.
 * @param machines all machines of the engine
 */
export function oversold(hosts: SoldHost[], reports: HostReport[], machines: readonly Observation[]): Found[] {
  return hosts.flatMap((host) => {
    if (host.kind !== 'VPS' || !reports.length) return [];
    const report = reportOf(host, hosts, reports);
    const on = reports.length === 1 ? machines : machines.filter((one) => one.host === report?.name);
    const detail = report
      ? [excess(host, report), cramped(host, report, on)].filter(Boolean).join(' ')
      : `The engine has no host ${host.name}.`;
    return detail ? [{ kind: 'CAPACITY' as const, order: host.name, generation: 0, detail }] : [];
  });
}

/** The findings that an offline host may have. They stay, because its engine cannot tell its size now. */
export const untold = (hosts: SoldHost[], reports: HostReport[]): Found[] =>
  hosts
    .filter((host) => reportOf(host, hosts, reports)?.state === 'offline')
    .map(({ name }) => ({ kind: 'CAPACITY', order: name, generation: 0, detail: '' }));

/** A single server has only one host, under any name. */
const reportOf = ({ name }: SoldHost, hosts: SoldHost[], reports: HostReport[]): HostReport | undefined =>
  reports.length === 1 && hosts.length === 1 ? reports[0] : reports.find((report) => report.name === name);

/** Empty if the host is as large as its operator says, or its engine cannot tell now. */
function excess(host: SoldHost, { state, size }: HostReport): string {
  if (state !== 'online') return '';
  const parts = [
    host.vcpus > size.vcpus && `${host.vcpus} vCPUs of ${size.vcpus}`,
    host.memoryMb > size.memoryMb && `${host.memoryMb} MB of memory of ${size.memoryMb}`,
    host.diskGb > size.diskGb && `${host.diskGb} GB of disk of ${size.diskGb}`,
  ].filter(Boolean);
  return parts.length ? `The host sells ${parts.join(', ')}.` : '';
}

/** Empty if the pool has room for a rebuild of each machine, or the engine cannot tell now. */
function cramped({ name }: SoldHost, { state, diskFreeGb }: HostReport, machines: readonly Observation[]): string {
  const largestGb = Math.max(0, ...machines.map(({ size }) => size?.diskGb ?? 0));
  if (state !== 'online' || diskFreeGb === undefined || diskFreeGb >= largestGb) return '';
  const facts = `The pool of ${name} has ${diskFreeGb} GB free, and its largest machine has a disk of ${largestGb} GB.`;
  return `${facts} A rebuild of that machine deletes it before the new one exists.`;
}
