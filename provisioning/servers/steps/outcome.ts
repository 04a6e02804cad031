/** The end of orders and changes that fail, and their refund. */
import type { Transaction } from '../../../entities/database/transaction.ts';
import { usdFromMicros } from '../../../entities/money.ts';
import { available, held, isPosted, post, REVENUE } from '../../../entities/payments/ledger.ts';
import { giveKept } from '../../../entities/payments/withheld.ts';
import { CHANGING, ERASED, type Server } from '../../../entities/servers/server.ts';
import { undoChange } from '../billing/change.ts';
import { chargeKept, chargeUnproven, type MachineTime } from '../billing/unproven.ts';
import { DriverError, type DriverErrorCode } from '../drivers/driver.ts';
import { move } from '../move.ts';

const PERMANENT: ReadonlySet<DriverErrorCode> = new Set(['no_capacity', 'rejected']);
/** Whether another attempt would fail as well. */
export const isPermanent = (error: unknown): boolean => error instanceof DriverError && PERMANENT.has(error.code);

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

/** Fails an order that the worker could not deliver. @param machine the data of its task, if the machine gave no proof */
export async function undeliverable(tx: Transaction, server: Server, machine: MachineTime = {}): Promise<void> {
  const chargedMicros = await chargeUnproven(tx, server, machine);
  const failureMessage = chargedMicros
    ? `The machine gave no proof. The order was refunded, except for the ${usdFromMicros(chargedMicros)} USD of its hours. One such order a day is free.`
    : 'The machine could not be delivered. The order was refunded in full.';
  await move(tx, server, 'FAILED', { failureCode: 'provisioning_failed', failureMessage, ...ERASED });
  await releaseHold(tx, server, chargedMicros);
}

/**
 * Releases the held price of an order, once. Captured money is not held any more, and an order that waits for its payment
 * holds none.
 * @param chargedMicros the part that is captured instead
 * @returns micro-USD; 0 if the order held none
 */
export async function releaseHold(tx: Transaction, server: Server, chargedMicros = 0n): Promise<bigint> {
  const { accountId, orderNumber, serviceCode } = server;
  if (!(await isPosted(tx, `hold:${orderNumber}`)) || (await isPosted(tx, `release:${orderNumber}`))) return 0n;
  const amountMicros = server.priceMonthMicros + server.setupFeeMicros - chargedMicros;
  const common = { debit: held(accountId), orderNumber, serviceCode };
  await post(
    tx,
    accountId,
    {
      ...{ ...common, kind: 'release', credit: available(accountId), amountMicros },
      ...{ externalKey: `release:${orderNumber}`, description: `${serviceCode} was not delivered` },
    },
    {
      ...{ ...common, kind: 'capture', credit: REVENUE, amountMicros: chargedMicros },
      ...{ externalKey: `capture:${orderNumber}`, description: `Hours of an undelivered ${serviceCode}` },
    },
  );
  return amountMicros;
}

/** Gives back the refund that a deleted server kept until its host was free, or its hold less its hours. */
export async function releaseKept(tx: Transaction, server: Server): Promise<void> {
  await giveKept(tx, `refund:${server.orderNumber}`);
  const chargedMicros = await chargeKept(tx, server);
  if (chargedMicros !== null) await releaseHold(tx, server, chargedMicros);
}

/**
 * Ends an order or a change that cannot be made: refunds it, and returns the server to its earlier state.
 * @param machine the data of its task, if the machine of an order gave no proof
 * @returns whether there was one
 */
export async function abandon(tx: Transaction, server: Server, machine: MachineTime = {}): Promise<boolean> {
  const { status } = server;
  const isOrder = status === 'PENDING' || status === 'PROVISIONING';
  if (isOrder) await undeliverable(tx, server, machine);
  else if (CHANGING.has(status)) await undoChange(tx, server);
  else return false;
  return true;
}
