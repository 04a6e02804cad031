/**
 * What becomes of a server whose next month is not paid: it is suspended, its machine is turned off, and after a week
 * it is deleted.
 */

import type { Queryable, Transaction } from '../../../entities/database/transaction.ts';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { transition } from '../../../entities/history/transition.ts';
import { SERVER_LIFECYCLE, type Server } from '../../../entities/servers/server.ts';
import { done, hop, nap, startTask } from '../../tasks/tasks.ts';
import type { ServerStep } from './step.ts';
import { destroyTask, serverTask } from './task.ts';

/** How long a server stays suspended before it is deleted. */
export const SUSPENDED_DAYS = 7;

/** Why a server is not renewed: the balance did not suffice, or its owner did not want it to be. */
type Reason = 'insufficient_balance' | 'not_renewed';

/**
 * Suspends a settled server, and has its machine turned off.
 * @returns whether it was suspended; one that is busy is left alone
 */
export async function suspend(
  tx: Transaction,
  server: Pick<Server, 'kind' | 'orderNumber' | 'accountId' | 'status'>,
  reason: Reason,
): Promise<boolean> {
  const { status, orderNumber } = server;
  if (status !== 'RUNNING' && status !== 'STOPPED') return false;
  const moved = await transition(tx, SERVER_LIFECYCLE, orderNumber, 'SUSPENDED', {
    actor: SYSTEM,
    set: { suspendedAt: new Date(), suspendedFrom: status },
    data: { reason },
  });
  if (moved) await startTask(tx, serverTask(server, 'suspend'));
  return moved !== undefined;
}

/** Turns the machine of a suspended server off, and waits until it is. */
export const powerOff: ServerStep = async (task, { server, driver, pollSeconds }) => {
  const { orderNumber: order, generation, suspendedAt } = server;
  if (server.change?.operation === 'resume') return hop('resume');
  const seen = await driver.power({ order, generation }, 'off', `suspend-${suspendedAt?.getTime()}`, task.aborted);
  return seen.power === 'off' || seen.phase === 'absent' ? done() : nap(pollSeconds);
};

/** Those whose time is over. One that is paid again and about to resume is not unpaid, however long that takes. */
const UNPAID = `status = 'SUSPENDED' and change is null and suspended_at <= now() - ${SUSPENDED_DAYS} * interval '1 day'`;

/** The order numbers of up to so many servers that have been suspended for too long. */
export async function expiredSuspensions(db: Queryable, limit: number): Promise<string[]> {
  const rows = await db.query<{ orderNumber: string }>(
    `select order_number from server where ${UNPAID} order by suspended_at limit $1`,
    [limit],
  );
  return rows.map(({ orderNumber }) => orderNumber);
}

/** Deletes servers that are still unpaid, also protected ones. One that resumes meanwhile is left alone. */
export async function expire(tx: Transaction, orderNumbers: readonly string[]): Promise<void> {
  const unpaid = await tx.query<Pick<Server, 'orderNumber' | 'accountId'>>(
    `select order_number, account_id from server
      where order_number = any($1) and ${UNPAID} order by order_number for update`,
    [orderNumbers],
  );
  for (const { orderNumber } of unpaid)
    await transition(tx, SERVER_LIFECYCLE, orderNumber, 'DELETING', { actor: SYSTEM, data: { reason: 'unpaid' } });
  for (const server of unpaid) await startTask(tx, destroyTask(server));
}
