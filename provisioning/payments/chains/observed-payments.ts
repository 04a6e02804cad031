/** Writes the payments that drivers observe. Nothing is credited here. */
import type { Database } from '../../../entities/database/database.ts';
import type { Queryable, Transaction } from '../../../entities/database/transaction.ts';
import { newId } from '../../../entities/ids.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import {
  DROP_PAYMENTS,
  FIND_SHOWN_AGAIN,
  LOCK_SHOWN_AGAIN,
  MARK_MISSING,
  MOVE_OBSERVED,
  WRITE_OBSERVED,
} from '../../../entities/payments/observed-payment.ts';
import type { Block, ObservedPayment } from '../drivers/driver.ts';
import { restorePayment, tell } from '../suspense.ts';

/** The origin of observed payments. */
export interface Origin {
  network: string;
  /** The block that contains them. */
  block?: Pick<Block, 'height' | 'hash' | 'at'>;
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
  const given = payments.map(({ units, at = block?.at, minedAt = block?.at, ...payment }) => ({
    ...payment,
    id: newId('pay'),
    units: String(units),
    at: at ?? null,
    minedAt: minedAt ?? null,
    confirmations: payment.confirmations ?? 0,
  }));
  const [height, hash] = [block?.height ?? null, block?.hash ?? null];
  const rows = await WRITE_OBSERVED.all(tx, [JSON.stringify(given), network, orderNumber ?? null, height, hash]);
  const ids = rows.map(({ id }) => id);
  if (ids.length) for (const move of MOVE_OBSERVED) await move.all(tx, [ids]);
  return orderNumbersOf(rows);
}

/** Drops uncredited payments that the gateway does not report any more. @returns the order numbers of their top-ups */
export const dropUnobserved = async (db: Queryable, origin: Origin, reported: readonly ObservedPayment[]) =>
  orderNumbersOf(await DROP_PAYMENTS.all(db, reportOf(origin, reported)));

/**
 * Tells the operator once when a gateway stops reporting credited payments of a top-up, and again when it resumes.
 * It reverses nothing: the operator may have restored a wallet wrongly, or marked an invoice by hand. Monero's wallet shows
 * a transaction only in its next block after a reorganisation. A person decides about the balance and the account.
 * @param payments all payments of the top-up
 */
export async function tellUnreported(tx: Transaction, origin: Origin, payments: readonly ObservedPayment[]) {
  for (const payment of await MARK_MISSING.all(tx, reportOf(origin, payments)))
    await tell(tx, payment, payment.missingSince ? 'payment.missing' : 'payment.found');
}

/** Credits payments again that were written off, and that the gateway of the top-up reports again, with these confirmations. */
export async function restoreReported(
  db: Database,
  origin: Origin,
  payments: readonly ObservedPayment[],
  confirmationsRequired: number,
): Promise<void> {
  const report = [...reportOf(origin, payments), confirmationsRequired];
  for (const { id, accountId } of await FIND_SHOWN_AGAIN.all(db, report))
    await db.transaction(async (tx) => {
      await lockAccount(tx, accountId);
      const payment = await LOCK_SHOWN_AGAIN.first(tx, [...report, id]);
      if (payment?.accountId === accountId) await restorePayment(tx, payment);
    });
}

const reportOf = ({ network, orderNumber }: Origin, reported: readonly ObservedPayment[]): unknown[] => [
  ...[network, orderNumber ?? null],
  ...[reported.map(({ txId }) => txId), reported.map(({ position }) => position)],
];
/** A payment that the operator gave to another account has no top-up. */
const orderNumbersOf = (rows: readonly { orderNumber: string | null }[]) => [
  ...new Set(rows.flatMap(({ orderNumber }) => orderNumber ?? [])),
];
