/** Writes the payments that drivers observe. Nothing is credited here. */
import type { Queryable, Transaction } from '../../../entities/database/transaction.ts';
import { newId } from '../../../entities/ids.ts';
import {
  markMissing,
  moveObserved,
  orphanPayments,
  WRITE_OBSERVED,
} from '../../../entities/payments/observed-payment.ts';
import type { Block, ObservedPayment } from '../drivers/driver.ts';
import { tell } from '../top-ups/credit.ts';

/** The origin of observed payments. */
export interface Origin {
  network: string;
  /** The block that contains them. */
  block?: Pick<Block, 'height' | 'hash'>;
  /** The top-up that the worker asked about. Absent: the address names it. */
  orderNumber?: string;
}

/**
 * Writes payments to deposit addresses as they are now, and leaves out payments to other addresses. A further observation
 * updates the block; a credited payment stays credited.
 * @returns the order numbers of the top-ups for which something is new
 */
export async function writeObserved(
  tx: Transaction,
  { network, block, orderNumber }: Origin,
  payments: readonly ObservedPayment[],
): Promise<string[]> {
  if (!payments.length) return [];
  const given = payments.map(({ units, at, ...payment }) => ({
    ...payment,
    id: newId('pay'),
    units: String(units),
    at: at ?? null,
    confirmations: payment.confirmations ?? 0,
  }));
  const [height, hash] = [block?.height ?? null, block?.hash ?? null];
  const rows = await WRITE_OBSERVED.all(tx, [JSON.stringify(given), network, orderNumber ?? null, height, hash]);
  const isMined = ({ confirmations }: { confirmations: number }) => block !== undefined || confirmations > 0;
  const mined = rows.filter((row) => isMined(row) && ['SEEN', 'ORPHANED'].includes(row.status));
  // An announcement takes no payment out of its block: the chain sync notices removed blocks itself.
  const before = orderNumber === undefined ? ['ORPHANED'] : ['ORPHANED', 'MINED'];
  const seen = rows.filter((row) => !isMined(row) && before.includes(row.status));
  await moveObserved(tx, 'MINED', idsOf(mined));
  await moveObserved(tx, 'SEEN', idsOf(seen));
  return orderNumbersOf(rows);
}

/** Orphans uncredited payments that the gateway does not report any more. @returns the order numbers of their top-ups */
export const orphanUnobserved = async (
  db: Queryable,
  { network, orderNumber }: Pick<Origin, 'network' | 'orderNumber'>,
  payments: readonly ObservedPayment[],
): Promise<string[]> => orderNumbersOf(await orphanPayments(db, network, orderNumber, payments));

/**
 * Tells the operator once when a gateway stops reporting credited payments of a top-up, and again when it resumes.
 * It reverses nothing: the operator may have restored a wallet wrongly, or marked an invoice by hand. Monero's wallet shows
 * a transaction only in its next block after a reorganisation. A person decides about the balance and the account.
 * @param payments all payments of the top-up
 */
export async function tellUnreported(
  tx: Transaction,
  { network, orderNumber }: Pick<Origin, 'network'> & { orderNumber: string },
  payments: readonly ObservedPayment[],
): Promise<void> {
  for (const payment of await markMissing(tx, network, orderNumber, payments))
    await tell(tx, payment, payment.missingSince ? 'payment.missing' : 'payment.found');
}

const idsOf = (rows: readonly { id: string }[]) => rows.map(({ id }) => id);
const orderNumbersOf = (rows: readonly { orderNumber: string }[]) => [...new Set(rows.map((row) => row.orderNumber))];
