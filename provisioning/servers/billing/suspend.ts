/** Suspension of a server whose next month is not paid. The worker turns its machine off, and deletes it after a week. */
import type { Transaction } from '../../../entities/database/transaction.ts';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { expression, transition } from '../../../entities/history/transition.ts';
import { LOCK_UNPAID_SERVERS } from '../../../entities/servers/renewal.ts';
import { SERVER_LIFECYCLE, type Server } from '../../../entities/servers/server.ts';
import { startTask } from '../../../entities/tasks/start.ts';
import { destroyTask, serverTask, type Tasked } from '../task.ts';

/** The reason of a suspension: the balance did not suffice, automatic renewal was off, or the account is suspended. */
type Reason = 'insufficient_balance' | 'not_renewed' | 'account_suspended';

/**
 * Suspends a stable server, and starts the task that turns its machine off.
 * @returns whether it was suspended; a server with a change in progress is not
 */
export async function suspend(
  tx: Transaction,
  server: Tasked & Pick<Server, 'status'>,
  reason: Reason,
): Promise<boolean> {
  const { status, orderNumber } = server;
  if (status !== 'RUNNING' && status !== 'STOPPED') return false;
  const moved = await transition(tx, SERVER_LIFECYCLE, orderNumber, 'SUSPENDED', {
    actor: SYSTEM,
    set: { suspendedAt: expression('now()'), suspendedFrom: status },
    data: { reason },
  });
  if (moved) await startTask(tx, serverTask(server));
  return moved !== undefined;
}

/** Deletes servers that are still unpaid, even protected ones. Servers that resume meanwhile stay. */
export async function expire(tx: Transaction, orderNumbers: readonly string[]): Promise<void> {
  const unpaid = await LOCK_UNPAID_SERVERS.all(tx, [orderNumbers]);
  for (const { orderNumber } of unpaid)
    await transition(tx, SERVER_LIFECYCLE, orderNumber, 'DELETING', { actor: SYSTEM, data: { reason: 'unpaid' } });
  for (const server of unpaid) await startTask(tx, destroyTask(server));
}
