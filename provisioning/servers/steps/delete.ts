/** The steps of deletion. The worker tries to destroy machines until the engine confirms their absence. */
import type { Transaction } from '../../../entities/database/transaction.ts';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { transition } from '../../../entities/history/transition.ts';
import { isBreakerOpen } from '../../../entities/servers/finding.ts';
import { SERVER_LIFECYCLE } from '../../../entities/servers/server.ts';
import { done, type LeasedTask, nap } from '../../tasks/tasks.ts';
import { releaseCapacity } from '../placement/capacity.ts';
import type { ServerStep, Work } from './step.ts';

/** Seconds between two looks at an open circuit breaker. */
const BREAKER_OPEN_SECONDS = 30;

export const destroy: ServerStep = async (task, work) =>
  (await destroyAll(task, work))
    ? done({ commit: (tx) => completeDeletion(tx, work.server.orderNumber) })
    : nap(await restSeconds(work));

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

/** Seconds until the worker tries to destroy the machines again. */
export const restSeconds = async ({ db, driver, pollSeconds }: Work): Promise<number> =>
  (await isBreakerOpen(db, driver.name)) ? BREAKER_OPEN_SECONDS : pollSeconds;

/** Marks the server as deleted, and releases its capacity. */
export async function completeDeletion(tx: Transaction, orderNumber: string): Promise<void> {
  await releaseCapacity(tx, orderNumber);
  await transition(tx, SERVER_LIFECYCLE, orderNumber, 'DELETED', { actor: SYSTEM });
}
