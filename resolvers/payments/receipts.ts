/** Receipts of a payment or a month, from the ledger. */

import { FIND_USAGE_TOTAL } from '../../entities/accounts/usage.ts';
import { databaseTime } from '../../entities/database/clock.ts';
import { find } from '../../entities/database/table.ts';
import { isOrderNumber } from '../../entities/ids.ts';
import {
  FIND_RECEIPT_START,
  LIST_RECEIPT_LINES,
  LIST_TOP_UP_LINES,
  type ReceiptLine,
} from '../../entities/payments/receipt.ts';
import { TopUp } from '../../entities/payments/top-up.ts';
import { formatUnits } from '../../provisioning/index.ts';
import { accountOf, type Context } from '../context.ts';
import { found } from '../errors.ts';

export interface Receipt {
  /** The order number, or the month. */
  number: string;
  accountId: string;
  from: Date;
  to: Date;
  issuedAt: Date;
  totalMicros: bigint;
  lines: (Omit<ReceiptLine, 'totalMicros' | 'units'> & { amountCrypto: string | null })[];
}

/** The receipt of a confirmed top-up. @throws ApiError not_found */
export async function receiptOfTopUp(context: Context, orderNumber: string): Promise<Receipt> {
  const accountId = accountOf(context);
  const topUp = found(isOrderNumber('TOP', orderNumber) && (await find(context.db, TopUp, { orderNumber, accountId })));
  found(topUp.status === 'CONFIRMED');
  const issuedAt = await databaseTime(context.db);
  const { at: from } = (await FIND_RECEIPT_START.first(context.db, [orderNumber]))!;
  const rows = await LIST_TOP_UP_LINES.all(context.db, [accountId, orderNumber, from, untilOf(issuedAt)]);
  const totalMicros = rows[0]?.totalMicros ?? 0n;
  return { number: orderNumber, accountId, from, to: issuedAt, issuedAt, totalMicros, lines: linesOf(context, rows) };
}

/** The receipt of a month in UTC, as far as it is over. @param month such as 2026-10 */
export async function receiptOfMonth(context: Context, month: string): Promise<Receipt> {
  const accountId = accountOf(context);
  const from = new Date(`${month}-01T00:00:00Z`);
  const to = new Date(Date.UTC(from.getUTCFullYear(), from.getUTCMonth() + 1) - 1);
  const rows = await LIST_RECEIPT_LINES.all(context.db, [accountId, from, untilOf(to)]);
  const { totalMicros } = (await FIND_USAGE_TOTAL.first(context.db, [accountId, from, to]))!;
  const issuedAt = await databaseTime(context.db);
  return { number: month, accountId, from, to, issuedAt, totalMicros, lines: linesOf(context, rows) };
}

const untilOf = (to: Date): Date => new Date(to.getTime() + 1);

function linesOf({ provisioning }: Context, rows: readonly ReceiptLine[]): Receipt['lines'] {
  const decimals = new Map(provisioning.payments.coins().map(({ code, decimals }) => [code, decimals]));
  return rows.map(({ totalMicros: _, units, ...line }) => {
    const places = line.coin === null ? undefined : decimals.get(line.coin);
    const amountCrypto = units === null || places === undefined ? null : formatUnits(BigInt(units), places);
    return { ...line, amountCrypto };
  });
}
