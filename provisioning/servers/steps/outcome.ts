/** Moves of a server to another state, and the refund of orders that fail. */
import type { Transaction } from '../../../entities/database/transaction.ts';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { type Move, transition } from '../../../entities/history/transition.ts';
import { available, held, isPosted, post } from '../../../entities/payments/ledger.ts';
import { ERASED, SERVER_LIFECYCLE, type Server } from '../../../entities/servers/server.ts';
import { Conflict } from '../../tasks/tasks.ts';
import { DriverError, type DriverErrorCode } from '../drivers/driver.ts';

const PERMANENT: ReadonlySet<DriverErrorCode> = new Set(['no_capacity', 'rejected']);
/** Whether another attempt would fail as well. */
export const isPermanent = (error: unknown): boolean => error instanceof DriverError && PERMANENT.has(error.code);
export const UNDELIVERABLE = 'The machine could not be delivered. The order was refunded in full.';

/** Fails an order whose server never ran, and releases its hold in full. */
export async function fail(
  tx: Transaction,
  server: Server,
  failureCode: string,
  failureMessage: string,
): Promise<void> {
  await move(tx, server, 'FAILED', { failureCode, failureMessage, ...ERASED });
  await releaseHold(tx, server);
}

/**
 * Releases the held price of an order. Captured money is not held any more, and an order that waits for its payment holds
 * none.
 * @returns micro-USD; 0 if the order held none
 */
export async function releaseHold(tx: Transaction, server: Server): Promise<bigint> {
  if (!(await isPosted(tx, `hold:${server.orderNumber}`))) return 0n;
  const amountMicros = server.priceMonthMicros + server.setupFeeMicros;
  await post(tx, server.accountId, {
    kind: 'release',
    debit: held(server.accountId),
    credit: available(server.accountId),
    amountMicros,
    externalKey: `release:${server.orderNumber}`,
    orderNumber: server.orderNumber,
    serviceCode: server.serviceCode,
    description: `${server.serviceCode} was not delivered`,
  });
  return amountMicros;
}

/** @throws Conflict if the state of the server does not allow the move any more, for example because it was deleted */
export async function move(
  tx: Transaction,
  server: Server,
  to: Server['status'],
  set: NonNullable<Move<Server>['set']>,
  more: Pick<Move<Server>, 'event' | 'data'> = {},
): Promise<Server> {
  const moved = await transition(tx, SERVER_LIFECYCLE, server.orderNumber, to, { actor: SYSTEM, set, ...more });
  if (!moved) throw new Conflict(`${server.orderNumber} cannot become ${to} any more.`);
  return moved;
}
