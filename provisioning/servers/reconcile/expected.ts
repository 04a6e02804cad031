/** The machines that stable servers should have, and how those of an engine differ from them. */
import { type DedicatedDetails, LIST_ITEMS, type VpsDetails } from '../../../entities/catalog.ts';
import type { Database } from '../../../entities/database/database.ts';
import {
  FIND_EXPECTED_MACHINES,
  type FindingKind,
  type LIST_EXPECTED_MACHINES,
} from '../../../entities/servers/finding.ts';
import type { Observation } from '../drivers/driver.ts';
import type { ConnectedEngine } from '../engines.ts';
import { imageDiffers, sizeDiffers, sizeOf } from '../placement/spec.ts';
import { type Found, nameOf } from './findings.ts';

type Listed = Awaited<ReturnType<typeof LIST_EXPECTED_MACHINES.all>>[number];
type Details = Parameters<typeof sizeOf>[0];
/** A machine that differs from its server, with the columns for a task. */
export type ExpectedMachine = Awaited<ReturnType<typeof FIND_EXPECTED_MACHINES.all>>[number] & { details: Details };

export const isAwake = (one?: Observation): boolean => one?.phase === 'present' && one.power === 'on';

/**
 * Finds the machines that differ from those that their engine listed, and reads them again. Machines that changed in between do
 * not count. Most machines are as they should be, and need no second look.
 * @param before the machines before the engine was asked
 * @returns the differing machines, and the number of all
 */
export async function stillDiffering(
  db: Database,
  { kinds, engine }: ConnectedEngine,
  before: readonly Listed[],
  seen: ReadonlyMap<string, Observation>,
): Promise<{ expected: ExpectedMachine[]; count: number }> {
  const items = await LIST_ITEMS.all(db, [['vps', 'dedicated']]);
  const tiers = new Map(items.map(({ code, details }) => [code, details as VpsDetails | DedicatedDetails]));
  const differing = before.flatMap((machine) => {
    const details = tiers.get(machine.serviceCode);
    return details && differs({ ...machine, details }, seen.get(nameOf(machine))) ? [{ ...machine, details }] : [];
  });
  const orders = differing.map(({ order }) => order);
  const rows = orders.length ? await FIND_EXPECTED_MACHINES.all(db, [kinds, engine, orders]) : [];
  const after = new Map(rows.map((machine) => [nameOf(machine), machine]));
  const expected = differing.flatMap(({ details, ...machine }) => {
    const now = after.get(nameOf(machine));
    return now?.status === machine.status ? [{ ...now, details, moving: machine.moving || now.moving }] : [];
  });
  return { expected, count: before.length - differing.length + expected.length };
}

/** Whether a machine needs another look. It is missing or elsewhere, differs from its server, or may be on against it. */
function differs(machine: Listed & { details: Details }, seen: Observation | undefined): boolean {
  if (!seen || differences(machine, seen).length) return true;
  const isElsewhere = seen.host && machine.host && seen.host !== machine.host;
  return Boolean(isElsewhere) || (machine.status !== 'RUNNING' && isAwake(seen));
}

/** How a machine differs from its server. */
export function differences(
  { order, generation, status, image, details, moving }: Omit<ExpectedMachine, 'asleep' | 'accountId' | 'kind'>,
  seen: Observation | undefined,
): Found[] {
  if (!seen || seen.phase === 'unknown' || seen.phase === 'absent' || seen.busy) return [];
  const wanted = { image, size: sizeOf(details) };
  const is = (kind: FindingKind, differs: boolean, its: string): Found[] =>
    differs ? [{ kind, order, generation, detail: `The server is ${status}, and its machine ${its}.` }] : [];
  if (seen.phase === 'incomplete') return is('INCOMPLETE', true, 'was never finished');
  const { vcpus, memoryMb, diskGb } = seen.size ?? wanted.size;
  return [
    ...is('POWER', !moving && seen.power === (status === 'RUNNING' ? 'off' : 'on'), `is ${seen.power}`),
    ...is('SIZE', sizeDiffers(wanted, seen), `has ${vcpus} vCPUs, ${memoryMb} MB of memory and ${diskGb} GB of disk`),
    ...is('IMAGE', imageDiffers(wanted, seen), `was made from ${seen.image}`),
  ];
}
