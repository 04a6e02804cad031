/** Receipts of a payment or a month, from the ledger. */
import { databaseTime } from '../../entities/database/clock.ts';
import { find } from '../../entities/database/table.ts';
import { isOrderNumber } from '../../entities/ids.ts';
import { FIND_RECEIPT_START, LIST_RECEIPT_LINES, type ReceiptLine } from '../../entities/payments/receipt.ts';
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
  return receipt(context, { number: orderNumber, from, to: issuedAt }, orderNumber, issuedAt);
}

/** The receipt of a month in UTC, as far as it is over. @param month such as 2026-10 */
export async function receiptOfMonth(context: Context, month: string): Promise<Receipt> {
  const from = new Date(`${month}-01T00:00:00Z`);
  const to = new Date(Date.UTC(from.getUTCFullYear(), from.getUTCMonth() + 1) - 1);
  return receipt(context, { number: month, from, to }, null, await databaseTime(context.db));
}

async function receipt(
  context: Context,
  range: Pick<Receipt, 'number' | 'from' | 'to'>,
  orderNumber: string | null,
  issuedAt: Date,
): Promise<Receipt> {
  const accountId = accountOf(context);
  const until = new Date(range.to.getTime() + 1);
  const rows = await LIST_RECEIPT_LINES.all(context.db, [accountId, orderNumber, range.from, until]);
  const decimals = new Map(context.provisioning.payments.coins().map(({ code, decimals }) => [code, decimals]));
  const lines = rows.map(({ totalMicros: _, units, ...line }) => {
    const places = line.coin === null ? undefined : decimals.get(line.coin);
    const amountCrypto = units === null || places === undefined ? null : formatUnits(BigInt(units), places);
    return { ...line, amountCrypto };
  });
  return { ...range, accountId, issuedAt, totalMicros: rows[0]?.totalMicros ?? 0n, lines };
}
