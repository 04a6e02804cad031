/** Deletes a server: the resolver refunds it, and a worker destroys its machine. */
import { find } from '../../entities/database/table.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { expression, transition } from '../../entities/history/transition.ts';
import { refundMicros } from '../../entities/money.ts';
import { keepRefund, refund } from '../../entities/payments/withheld.ts';
import { ERASED, SERVER_LIFECYCLE, type Server } from '../../entities/servers/server.ts';
import { Task } from '../../entities/tasks/task.ts';
import { chargeUnproven, releaseChange, releaseHold } from '../../provisioning/index.ts';
import { actorOf, type Context } from '../context.ts';
import { found } from '../errors.ts';
import { lockServer } from './find.ts';

export interface DeletedServer {
  server: Server;
  refundedMicros: bigint;
}

/**
 * Deletes a server in any status. A server that never ran is refunded in full, except for hours without proof. A dedicated one
 * that is being made is refunded when its host is free. Any other is refunded for the unused whole hours of its month. The money
 * of a dedicated one waits until its host is free. Deleting again changes nothing.
 * @throws ApiError not_found or delete_protected
 */
export const deleteServer = (context: Context, orderNumber: string): Promise<DeletedServer> =>
  context.db.transaction((tx) => destroyServer(tx, context, orderNumber, { refund: true }));

/**
 * Deletes a server for the operator, with or without the refund of its unused hours. Its delete protection does not hold. With
 * the refund, an undelivered order gets all its money back at once. Otherwise it pays as if its customer deleted it. The event has
 * the reason.
 * @throws ApiError not_found
 */
export const removeServer = (
  context: Context,
  { orderNumber, ...terms }: { orderNumber: string; refund: boolean; reason: string },
): Promise<DeletedServer> => context.db.transaction((tx) => destroyServer(tx, context, orderNumber, terms));

interface Terms {
  refund: boolean;
  /** The reason of the operator. Absent: its customer deletes it. */
  reason?: string;
}

/** Whether the operator gives an undelivered order all its money back. */
const isForgiven = ({ refund, reason }: Terms): boolean => refund && reason !== undefined;

/** Deletes a server within a transaction. @throws ApiError not_found or delete_protected */
export async function destroyServer(
  tx: Transaction,
  context: Context,
  orderNumber: string,
  terms: Terms,
): Promise<DeletedServer> {
  const { refund: isRefunded, reason } = terms;
  const present = await lockServer(tx, context, orderNumber, 'while suspended');
  if (present.status === 'DELETING') return { server: present, refundedMicros: 0n };
  if (present.deleteProtection && !reason) throw new ApiError('delete_protected');
  // A host may need a wipe of hours. Its customer would otherwise take the next host with the same money.
  const keepsHold = present.kind === 'DEDICATED' && present.status === 'PROVISIONING' && !isForgiven(terms);
  const set = { ...ERASED, ...(keepsHold && { unprovenAt: expression('now()') }) };
  const data = reason ? { reason, refunded: isRefunded } : {};
  const move = { actor: actorOf(context), set, data };
  const server = found(await transition(tx, SERVER_LIFECYCLE, orderNumber, 'DELETING', move));
  const refundedMicros = keepsHold ? 0n : await refundServer(tx, server, terms);
  if (keepsHold) tx.changed({ kind: 'balance', accountId: server.accountId, id: server.accountId });
  await context.provisioning.servers.destroy(tx, server);
  return { server, refundedMicros };
}

/** Refunds a server that was deleted at its `updatedAt`. @returns micro-USD */
async function refundServer(
  tx: Transaction,
  server: Server & { previousState: Server['status'] },
  terms: Terms,
): Promise<bigint> {
  if (server.previousState === 'FAILED') return 0n; // the failure gave it back, or the wipe of its host does
  if (!server.paidUntil) {
    if (isForgiven(terms)) return releaseHold(tx, server);
    const task = await find(tx, Task, { subject: server.orderNumber });
    return releaseHold(tx, server, await chargeUnproven(tx, server, task?.data ?? {}));
  }
  if (!terms.refund) return releaseChange(tx, server);
  const amountMicros = refundMicros(server.priceMonthMicros, server.paidUntil, server.updatedAt);
  const give = server.kind === 'DEDICATED' ? keepRefund : refund;
  await give(tx, server.accountId, {
    amountMicros,
    externalKey: `refund:${server.orderNumber}`,
    orderNumber: server.orderNumber,
    serviceCode: server.serviceCode,
    description: `Unused hours of ${server.serviceCode}`,
    periodFrom: server.updatedAt,
    periodTo: server.paidUntil,
  });
  return amountMicros + (await releaseChange(tx, server));
}
