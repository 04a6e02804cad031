/**
 * The other machine of an order. The first one gives no proof in time, is stuck, or its host has no room. The other has the
 * next generation and another MAC address. Without its proof, the order fails and is refunded.
 *
 * The worker removes the machine that it gives up. If that fails or takes long, its system must be off, since the next one gets
 * its addresses. It keeps its claim on the host, the operator gets a finding, and the observer goes on with the removal. An unknown state decides nothing. The order
 * ends at its deadline, and its capacity stays claimed until the engine confirms the absence.
 */
import { update } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { isBreakerOpen } from '../../../entities/servers/finding.ts';
import { Server } from '../../../entities/servers/server.ts';
import { Conflict, hop, type LeasedTask, nap } from '../../tasks/tasks.ts';
import type { MachineTime } from '../billing/unproven.ts';
import { DriverError, type Observation } from '../drivers/driver.ts';
import { claimHost, freeGenerations, lockHosts, requireSeen } from '../placement/allocate.ts';
import { keyOf } from '../placement/spec.ts';
import { reportStuck } from '../reconcile/findings.ts';
import { RECONCILE, UNDO } from '../task.ts';
import { undeliverable } from './outcome.ts';
import type { ServerStep, Work } from './step.ts';
import { isOutage, noteTrouble } from './trouble.ts';

/** The most machines that the worker makes for one order. */
const GENERATIONS_MAX = 2;

/** Gives the machine up. Then the worker makes another, or the order fails. */
export const remake: ServerStep = async (task, work) => {
  const { db, server, driver, pollSeconds } = work;
  if (await isBreakerOpen(db, driver.name)) return nap(pollSeconds);
  const seen = await removed(task, work);
  if (seen.phase === 'unknown') return nap(pollSeconds);
  // A driver that is at work on the removal, such as with a wiper, has turned off the system.
  const isLeaving = seen.phase === 'incomplete' && seen.busy === true;
  if (seen.phase !== 'absent' && !isLeaving && seen.power === 'on') {
    const off = await driver.power(keyOf(server), 'off', `off-${server.generation}`, task.aborted);
    if (off.power !== 'off') return nap(pollSeconds);
  }
  if (server.generation >= GENERATIONS_MAX) return hop(UNDO, { commit: (tx) => undeliverable(tx, server, task.data) });
  return hop(RECONCILE, {
    data: { ...task.data, proofBy: null, onAt: null },
    commit: (tx) => nextGeneration(tx, work, seen, task.data),
  });
};

/** Tries to remove the machine. @returns its state after that */
async function removed(task: LeasedTask, work: Work): Promise<Observation> {
  const { server, driver } = work;
  try {
    return await driver.destroy(keyOf(server), task.aborted);
  } catch (error) {
    if (!(error instanceof DriverError) || isOutage(error)) throw error;
    await noteTrouble(work, error);
    return driver.observe(keyOf(server), task.aborted);
  }
}

/** Claims a host for the next machine of the order. Without room the order fails. */
async function nextGeneration(
  tx: Transaction,
  { server, driver }: Work,
  seen: Observation,
  machine: MachineTime,
): Promise<void> {
  const { orderNumber, generation } = server;
  if (seen.phase !== 'absent') await reportStuck(tx, driver.name, { ...seen, order: orderNumber, generation });
  await lockHosts(tx, server);
  if (seen.phase === 'absent') await freeGenerations(tx, [server]);
  // The removal of an order asks one engine about all its machines.
  const isBound = seen.phase !== 'absent';
  const claimed = await claimHost(tx, { ...server, generation: generation + 1 }, server.host, isBound);
  if (!claimed) {
    await requireSeen(tx, server.region);
    return undeliverable(tx, server, machine);
  }
  const present = { orderNumber, generation, status: 'PROVISIONING' } as const;
  const updated = await update(tx, Server, present, { generation: generation + 1, ...claimed });
  if (!updated) throw new Conflict(`${orderNumber} is not being provisioned any more.`);
}
