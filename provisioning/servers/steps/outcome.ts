/** How a server leaves a state: moved, failed, or with its held price given back. */
import type { Transaction } from '../../../entities/database/transaction.ts';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { type Move, transition } from '../../../entities/history/transition.ts';
import { available, held, post } from '../../../entities/payments/ledger.ts';
import { SERVER_LIFECYCLE, type Server } from '../../../entities/servers/server.ts';
import { Conflict } from '../../tasks/tasks.ts';
import { DriverError, type DriverErrorCode } from '../drivers/driver.ts';

const PERMANENT: ReadonlySet<DriverErrorCode> = new Set(['no_capacity', 'rejected']);

/** Whether trying again would change nothing. */
export const isPermanent = (error: unknown): boolean => error instanceof DriverError && PERMANENT.has(error.code);
export const UNDELIVERABLE = 'The machine could not be delivered. The order was paid back in full.';

/** Lets an order fail that has not run yet: the hold is released in full. */
export async function fail(
  tx: Transaction,
  server: Server,
  failureCode: string,
  failureMessage: string,
): Promise<void> {
  await move(tx, server, 'FAILED', { failureCode, failureMessage, rootPassword: null });
  await releaseHold(tx, server);
}

/**
 * Gives the held price of an order back; what was captured before is not held any more and stays. One that waits for its
 * payment holds nothing yet.
 */
export async function releaseHold(tx: Transaction, server: Server): Promise<bigint> {
  const [hold] = await tx.query('select from transfer where external_key = $1', [`hold:${server.orderNumber}`]);
  if (!hold) return 0n;
  const amountMicros = server.priceMonthMicros + server.setupFeeMicros;
  await post(tx, server.accountId, [
    {
      kind: 'release',
      debit: held(server.accountId),
      credit: available(server.accountId),
      amountMicros,
      externalKey: `release:${server.orderNumber}`,
      orderNumber: server.orderNumber,
      serviceCode: server.serviceCode,
      description: `${server.serviceCode} was not delivered`,
    },
  ]);
  return amountMicros;
}

/** @throws Conflict if the server went another way meanwhile, such as being deleted */
export async function move(
  tx: Transaction,
  server: Server,
  to: Server['status'],
  set: Partial<Server>,
  more: Pick<Move<Server>, 'event' | 'data'> = {},
): Promise<void> {
  const moved = await transition(tx, SERVER_LIFECYCLE, server.orderNumber, to, { actor: SYSTEM, set, ...more });
  if (!moved) throw new Conflict(`${server.orderNumber} could not become ${to}.`);
}
