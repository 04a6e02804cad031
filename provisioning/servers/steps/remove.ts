/** The removal of all machines of a server that was deleted, or whose order failed. It ends when the engine confirms their absence. */
import type { Transaction } from '../../../entities/database/transaction.ts';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { transition } from '../../../entities/history/transition.ts';
import { isBreakerOpen } from '../../../entities/servers/finding.ts';
import { SERVER_LIFECYCLE, type Server } from '../../../entities/servers/server.ts';
import { done, nap } from '../../tasks/tasks.ts';
import { releaseCapacity } from '../placement/capacity.ts';
import { BREAKER_OPEN_SECONDS, pauseSeconds } from '../task.ts';
import { releaseKept } from './outcome.ts';
import type { ServerStep } from './step.ts';

/** Destroys the machines, also given-up ones, unless the circuit breaker is open. A wipe can take hours, so the pauses grow. */
export const remove: ServerStep = async ({ aborted, data }, { db, server, driver, pollSeconds }) => {
  const { status, orderNumber: order, ipv4 } = server;
  if (status === 'FAILED' && !ipv4) return done(); // It holds no capacity any more.
  if (await isBreakerOpen(db, driver.name)) return nap(BREAKER_OPEN_SECONDS);
  let absent = true;
  for (let generation = server.generation; generation > 0; generation--) {
    const seen = await driver.destroy({ order, generation }, aborted);
    absent &&= seen.phase === 'absent';
  }
  if (absent) return done({ commit: (tx) => release(tx, server) });
  const waits = Number(data.waits ?? 0) + 1;
  return nap(pauseSeconds(pollSeconds, waits), { data: { waits } });
};

/** Releases the capacity of a server whose machines are gone, and the hold that lasts as long. A deletion ends with that. */
export async function release(tx: Transaction, server: Server): Promise<void> {
  const { orderNumber, status } = server;
  await releaseKept(tx, server);
  await releaseCapacity(tx, orderNumber);
  if (status === 'DELETING')
    await transition(tx, SERVER_LIFECYCLE, orderNumber, 'DELETED', { set: { sshPublicKeys: [] }, actor: SYSTEM });
}
