/**
 * Recovery of a machine that gives no proof in time, is stuck, or whose host has no room. The worker makes one other machine,
 * with the next generation and another MAC address. Without its proof, the order fails and is refunded.
 *
 * The worker removes the machine that it gives up. If that fails, the machine must be off, since the next one gets its
 * addresses. It keeps its claim on the host, and the operator gets a finding. An unknown state decides nothing. The order
 * ends at its deadline, and its capacity stays claimed until the engine confirms the absence.
 */
import { update } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { isBreakerOpen } from '../../../entities/servers/finding.ts';
import { Server } from '../../../entities/servers/server.ts';
import { Conflict, hop, type LeasedTask, nap } from '../../tasks/tasks.ts';
import type { MachineTime } from '../billing/unproven.ts';
import { DriverError, type DriverErrorCode, type Observation } from '../drivers/driver.ts';
import { claimHost, freeGenerations, lockHosts } from '../placement/allocate.ts';
import { keyOf } from '../placement/spec.ts';
import { reportStuck } from '../reconcile/findings.ts';
import { undeliverable } from './outcome.ts';
import type { ServerStep, Work } from './step.ts';
import { ATTEMPTS_MAX } from './task.ts';
import { noteTrouble } from './trouble.ts';

/** The most machines that the worker makes for one order. */
const GENERATIONS_MAX = 2;

/** The data of a task: the deadline of the proof. */
export const proofWithin = (task: LeasedTask, seconds: number): object => ({
  proofBy: new Date(task.now().getTime() + seconds * 1000).toISOString(),
});

/** The code of a driver's error; undefined for other errors. */
export const codeOf = (error: unknown): DriverErrorCode | undefined =>
  error instanceof DriverError ? error.code : undefined;

/** Whether this generation cannot be finished: at once if it is stuck, otherwise after some attempts. */
export function isHopeless(error: unknown, attempts: number): boolean {
  const code = codeOf(error);
  return code === 'stuck' || ((code === 'failed' || code === 'conflict') && attempts >= ATTEMPTS_MAX);
}

/** Gives the machine up. Then the worker makes another, or the order fails. */
export const replace: ServerStep = async (task, work) => {
  const { db, server, driver, pollSeconds } = work;
  if (await isBreakerOpen(db, driver.name)) return nap(pollSeconds);
  const seen = await removed(task, work);
  if (seen.phase === 'unknown') return nap(pollSeconds);
  if (seen.phase !== 'absent' && seen.power === 'on') {
    const off = await driver.power(keyOf(server), 'off', `off-${server.generation}`, task.aborted);
    if (off.power !== 'off') return nap(pollSeconds);
  }
  if (server.generation >= GENERATIONS_MAX)
    return hop('clean', { commit: (tx) => undeliverable(tx, server, task.data) });
  return hop('create', {
    data: { proofBy: null },
    commit: (tx) => nextGeneration(tx, work, seen, task.data),
  });
};

/** Tries to remove the machine. @returns its state after that */
async function removed(task: LeasedTask, work: Work): Promise<Observation> {
  const { server, driver } = work;
  try {
    return await driver.destroy(keyOf(server), task.aborted);
  } catch (error) {
    const code = codeOf(error);
    if (code === undefined || code === 'unreachable') throw error;
    await noteTrouble(work, task, error);
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
  const host = await claimHost(tx, { ...server, generation: generation + 1 }, server.host);
  if (host === undefined) return undeliverable(tx, server, machine);
  const present = { orderNumber, generation, status: 'PROVISIONING' } as const;
  const updated = await update(tx, Server, present, { generation: generation + 1, host });
  if (!updated) throw new Conflict(`${orderNumber} is not being provisioned any more.`);
}
