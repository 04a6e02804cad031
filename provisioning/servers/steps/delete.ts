/** The steps of deletion. The worker tries to destroy machines until the engine confirms their absence. */
import type { Transaction } from '../../../entities/database/transaction.ts';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { transition } from '../../../entities/history/transition.ts';
import { isBreakerOpen } from '../../../entities/servers/finding.ts';
import { SERVER_LIFECYCLE } from '../../../entities/servers/server.ts';
import { done, type LeasedTask, nap, type Outcome } from '../../tasks/tasks.ts';
import { releaseCapacity } from '../placement/capacity.ts';
import type { ServerStep, Work } from './step.ts';
import { pauseSeconds } from './task.ts';

/** Seconds between two looks at an open circuit breaker. */
const BREAKER_OPEN_SECONDS = 30;

export const destroy: ServerStep = async (task, work) =>
  (await destroyAll(task, work))
    ? done({ commit: (tx) => completeDeletion(tx, work.server.orderNumber) })
    : rest(task, work);

/**
 * Destroys all machines of a server, including given-up ones, unless the circuit breaker of the engine is open.
 * @returns whether the engine confirms that all are absent
 */
export async function destroyAll({ aborted }: LeasedTask, { db, server, driver }: Work): Promise<boolean> {
  if (await isBreakerOpen(db, driver.name)) return false;
  let absent = true;
  for (let generation = server.generation; generation > 0; generation--) {
    const seen = await driver.destroy({ order: server.orderNumber, generation }, aborted);
    absent &&= seen.phase === 'absent';
  }
  return absent;
}

/** Rests before the next attempt to destroy the machines. A wipe can take hours, so the pauses grow. */
export async function rest({ data }: LeasedTask, { db, driver, pollSeconds }: Work): Promise<Outcome> {
  if (await isBreakerOpen(db, driver.name)) return nap(BREAKER_OPEN_SECONDS);
  const waits = Number(data.waits ?? 0) + 1;
  return nap(pauseSeconds(pollSeconds, waits), { data: { waits } });
}

/** Marks the server as deleted, and releases its capacity. */
export async function completeDeletion(tx: Transaction, orderNumber: string): Promise<void> {
  await releaseCapacity(tx, orderNumber);
  await transition(tx, SERVER_LIFECYCLE, orderNumber, 'DELETED', { actor: SYSTEM });
}
