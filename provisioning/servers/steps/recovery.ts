/**
 * What is tried, one after the other, with a machine that gives no proof in time: it is restarted, then made anew where it
 * is, then given up, and another one is made with the next generation and so another MAC. A machine that can neither be
 * finished nor removed is given up at once, and so is one that its host has no room for after all. The last thing is the refund in full.
 *
 * A machine that was given up is removed. Where it cannot be, it must at least be off, for the next one has its addresses;
 * it keeps what it has claimed of its host, and is reported. Of what nobody can see nothing is concluded: that ends by the
 * deadline of the order, and everything stays claimed until its absence is confirmed.
 */
import type { Transaction } from '../../../entities/database/transaction.ts';
import { isBreakerOpen } from '../../../entities/servers/finding.ts';
import type { Server } from '../../../entities/servers/server.ts';
import { Conflict, hop, type LeasedTask, nap } from '../../tasks/tasks.ts';
import { DriverError, type DriverErrorCode, type Observation } from '../drivers/driver.ts';
import { claimHost, freeGenerations, lockHosts } from '../placement/allocate.ts';
import { keyOf } from '../placement/spec.ts';
import { reportStuck } from '../reconcile/findings.ts';
import { fail, UNDELIVERABLE } from './outcome.ts';
import type { ServerStep, Work } from './step.ts';
import { ATTEMPTS_MAX } from './task.ts';

/** How many machines are made for one order, at the most. */
const GENERATIONS_MAX = 3;

const RECOVERY_STEPS = ['restart', 'remake', 'replace'] as const;
type RecoveryStep = (typeof RECOVERY_STEPS)[number];

/** What a task remembers: until when proof is waited for, and what was tried before with this generation. */
export const proofWithin = (seconds: number, tried: RecoveryStep | null = null): object => ({
  proofBy: new Date(Date.now() + seconds * 1000).toISOString(),
  tried,
});

/** The next thing to try. */
export const nextRecoveryStep = ({ data }: LeasedTask): RecoveryStep =>
  RECOVERY_STEPS[RECOVERY_STEPS.indexOf(data.tried as RecoveryStep) + 1] ?? 'replace';

/** Undefined for what no driver says. */
export const codeOf = (error: unknown): DriverErrorCode | undefined =>
  error instanceof DriverError ? error.code : undefined;

/** Whether a machine of this generation will not be finished: at once if it is stuck, else after some attempts. */
export function isHopeless(error: unknown, attempts: number): boolean {
  const code = codeOf(error);
  return code === 'stuck' || ((code === 'failed' || code === 'conflict') && attempts >= ATTEMPTS_MAX);
}

/** Every answer of the engine leads to the next recovery step, except that it is unreachable. */
const tryRecovery =
  (step: 'restart' | 'remake', call: (task: LeasedTask, work: Work) => Promise<Observation>): ServerStep =>
  async (task, work) => {
    const data = proofWithin(work.proofSeconds, step);
    try {
      await call(task, work);
    } catch (error) {
      const code = codeOf(error);
      if (code === undefined || code === 'unreachable') throw error;
      return hop(nextRecoveryStep({ ...task, data: { tried: step } }), { data });
    }
    return hop('prove', { data });
  };

/** Nobody has been on it yet, so its power is simply cut. */
export const restart: ServerStep = tryRecovery('restart', ({ aborted }, { server, driver }) =>
  driver.power(keyOf(server), 'reset', `restart-${server.generation}`, aborted),
);

/** Makes the machine anew, where it is. */
export const remake: ServerStep = tryRecovery('remake', async ({ aborted }, { server, driver, specOf }) =>
  driver.rebuild(await specOf(server), `remake-${server.generation}`, aborted),
);

/** Gives the machine up. Then another one is made, or the order fails. */
export const replace: ServerStep = async (task, work) => {
  const { db, server, driver, pollSeconds } = work;
  if (await isBreakerOpen(db, driver.name)) return nap(pollSeconds);
  const seen = await removed(task, work);
  if (seen.phase === 'unknown') return nap(pollSeconds);
  if (seen.phase !== 'absent' && seen.power === 'on') {
    const off = await driver.power(keyOf(server), 'off', `off-${server.generation}`, task.aborted);
    if (off.power !== 'off') return nap(pollSeconds);
  }
  if (server.generation >= GENERATIONS_MAX) return hop('clean', { commit: (tx) => undeliverable(tx, server) });
  return hop('create', {
    data: { tried: null, proofBy: null },
    commit: (tx) => nextGeneration(tx, server, driver.name, seen),
  });
};

/** What is left of the machine after trying to remove it. */
async function removed({ aborted }: LeasedTask, { server, driver }: Work): Promise<Observation> {
  try {
    return await driver.destroy(keyOf(server), aborted);
  } catch (error) {
    const code = codeOf(error);
    if (code === undefined || code === 'unreachable') throw error;
    return driver.observe(keyOf(server), aborted);
  }
}

/** The next machine of the order may be on another host. Without room for it the order fails, and is cleaned up. */
async function nextGeneration(tx: Transaction, server: Server, driver: string, seen: Observation): Promise<void> {
  const { orderNumber, generation } = server;
  if (seen.phase !== 'absent') await reportStuck(tx, driver, { ...seen, order: orderNumber, generation });
  await lockHosts(tx, server);
  if (seen.phase === 'absent') await freeGenerations(tx, [server]);
  const host = await claimHost(tx, { ...server, generation: generation + 1 }, server.host);
  if (host === undefined) return undeliverable(tx, server);
  const [moved] = await tx.query(
    `update server set generation = generation + 1, host = $3
      where order_number = $1 and generation = $2 and status = 'PROVISIONING' returning id`,
    [orderNumber, generation, host],
  );
  if (!moved) throw new Conflict(`${orderNumber} went another way.`);
}

const undeliverable = (tx: Transaction, server: Server) => fail(tx, server, 'provisioning_failed', UNDELIVERABLE);
