/**
 * Recovery of a machine that gives no proof in time. The worker restarts it, then rebuilds it in place, then replaces it. The
 * next machine has the next generation and another MAC address. The worker replaces a stuck machine at once, and one whose host has no
 * room. In the end the order fails and is refunded.
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
const GENERATIONS_MAX = 3;

const RECOVERY_STEPS = ['restart', 'remake', 'replace'] as const;
type RecoveryStep = (typeof RECOVERY_STEPS)[number];

/** The data of a task: the deadline of the proof, and the last recovery step with this generation. */
export const proofWithin = (task: LeasedTask, seconds: number, tried: RecoveryStep | null = null): object => ({
  proofBy: new Date(task.now().getTime() + seconds * 1000).toISOString(),
  tried,
});

/** The step after the last one that was tried. */
export const nextRecoveryStep = ({ data }: LeasedTask): RecoveryStep =>
  RECOVERY_STEPS[RECOVERY_STEPS.indexOf(data.tried as RecoveryStep) + 1] ?? 'replace';

/** The code of a driver's error; undefined for other errors. */
export const codeOf = (error: unknown): DriverErrorCode | undefined =>
  error instanceof DriverError ? error.code : undefined;

/** Whether this generation cannot be finished: at once if it is stuck, otherwise after some attempts. */
export function isHopeless(error: unknown, attempts: number): boolean {
  const code = codeOf(error);
  return code === 'stuck' || ((code === 'failed' || code === 'conflict') && attempts >= ATTEMPTS_MAX);
}

/** Every answer of the engine leads to the next recovery step, except that it is unreachable. */
const tryRecovery =
  (step: 'restart' | 'remake', call: (task: LeasedTask, work: Work) => Promise<Observation>): ServerStep =>
  async (task, work) => {
    const data = proofWithin(task, work.proofSeconds, step);
    try {
      await call(task, work);
    } catch (error) {
      const code = codeOf(error);
      if (code === undefined || code === 'unreachable') throw error;
      await noteTrouble(work, task, error);
      return hop(nextRecoveryStep({ ...task, data: { tried: step } }), { data });
    }
    return hop('prove', { data });
  };

/** Resets the power of the machine. No customer has used it yet, so an orderly shutdown is not needed. */
export const restart: ServerStep = tryRecovery('restart', ({ aborted }, { server, driver }) =>
  driver.power(keyOf(server), 'reset', `restart-${server.generation}`, aborted),
);

/** Rebuilds the machine in place. */
export const remake: ServerStep = tryRecovery('remake', async ({ aborted }, { server, driver, specOf }) =>
  driver.rebuild(await specOf(server), `remake-${server.generation}`, aborted),
);

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
    data: { tried: null, proofBy: null },
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
