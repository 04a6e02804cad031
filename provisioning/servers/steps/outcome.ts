/** The end of orders and changes that fail, and their refund. */
import { find } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { usdFromMicros } from '../../../entities/money.ts';
import { available, held, isPosted, post, REVENUE, Transfer } from '../../../entities/payments/ledger.ts';
import { giveKept } from '../../../entities/payments/withheld.ts';
import { CHANGING, ERASED, type Server } from '../../../entities/servers/server.ts';
import { undoChange } from '../billing/change.ts';
import { chargeKept, chargeUnproven, type MachineTime } from '../billing/unproven.ts';
import { DriverError, type DriverErrorCode } from '../drivers/driver.ts';
import { move } from '../move.ts';

/** The failure of an order that the worker could not deliver. */
const UNDELIVERED = 'provisioning_failed';
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

/**
 * Fails an order that the worker could not deliver. A dedicated order whose machine ran keeps its hold until its host is wiped.
 * Otherwise one price would take host after host. No customer can make an installation fail. So an order whose machine never ran
 * holds nothing, although its host stays claimed until the wipe.
 * @param machine the data of its task, if the machine gave no proof
 */
export async function undeliverable(tx: Transaction, server: Server, machine: MachineTime = {}): Promise<void> {
  const chargedMicros = await chargeUnproven(tx, server, machine);
  const keepsHold = server.kind === 'DEDICATED' && machine.onSeconds !== undefined;
  const refunded = keepsHold ? 'The refund comes when its host is wiped' : 'The order was refunded';
  const failureMessage = chargedMicros
    ? `The machine gave no proof. ${refunded}, except for the ${usdFromMicros(chargedMicros)} USD of its hours. One such order a day is free.`
    : `The machine could not be delivered. ${refunded}${keepsHold ? '' : ' in full'}.`;
  await move(tx, server, 'FAILED', { failureCode: UNDELIVERED, failureMessage, ...ERASED });
  if (!keepsHold) return void (await releaseHold(tx, server, chargedMicros));
  await captureHours(tx, server, chargedMicros);
  tx.changed({ kind: 'balance', accountId: server.accountId, id: server.accountId });
}

/**
 * Releases the held price of an order, once. Captured money is not held any more, and an order that waits for its payment
 * holds none.
 * @param chargedMicros the part that is captured instead, now or before
 * @returns micro-USD; 0 if the order held none
 */
export async function releaseHold(tx: Transaction, server: Server, chargedMicros = 0n): Promise<bigint> {
  const { accountId, orderNumber, serviceCode } = server;
  if (!(await isPosted(tx, `hold:${orderNumber}`)) || (await isPosted(tx, `release:${orderNumber}`))) return 0n;
  await captureHours(tx, server, chargedMicros);
  const amountMicros = server.priceMonthMicros + server.setupFeeMicros - chargedMicros;
  await post(tx, accountId, {
    ...{ kind: 'release', debit: held(accountId), credit: available(accountId), amountMicros },
    ...{ externalKey: `release:${orderNumber}`, description: `${serviceCode} was not delivered` },
    ...{ orderNumber, serviceCode },
  });
  return amountMicros;
}

const captureKey = ({ orderNumber }: Server): string => `capture:${orderNumber}`;

/** Captures a part of the held price of an order, once. */
async function captureHours(tx: Transaction, server: Server, amountMicros: bigint): Promise<void> {
  const { accountId, orderNumber, serviceCode } = server;
  await post(tx, accountId, {
    ...{ kind: 'capture', debit: held(accountId), credit: REVENUE, amountMicros },
    ...{ externalKey: captureKey(server), description: `Hours of an undelivered ${serviceCode}` },
    ...{ orderNumber, serviceCode },
  });
}

/**
 * Gives back the money that a server kept until its host was free. A deleted one kept its refund, an order its hold less its
 * hours. A failure has captured the hours before.
 */
export async function releaseKept(tx: Transaction, server: Server): Promise<void> {
  await giveKept(tx, `refund:${server.orderNumber}`);
  const isFailed = server.failureCode === UNDELIVERED && !server.paidUntil;
  const captured = isFailed && (await find(tx, Transfer, { externalKey: captureKey(server) }));
  const chargedMicros = isFailed ? (captured ? captured.amountMicros : 0n) : await chargeKept(tx, server);
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
