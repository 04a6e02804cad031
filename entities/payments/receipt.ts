/** The lines of receipts: the changes of a balance, with the payments behind them. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { nullable, type Row } from '../database/table.ts';

/** The most lines of a receipt. The total counts all changes. */
export const RECEIPT_LINES_MAX = 1_000;

const LINE = {
  at: column.timestamp(),
  description: column.text(),
  orderNumber: nullable(column.text()),
  /** Negative if it left the balance. */
  amountMicros: column.bigint(),
  coin: nullable(column.text()),
  /** In the smallest unit of the coin. Negative if the chain removed the payment. */
  units: nullable(column.text()),
  network: nullable(column.text()),
  txId: nullable(column.text()),
  /** Of all lines. */
  totalMicros: column.bigint(),
};
export type ReceiptLine = Row<typeof LINE>;
/** When the first change of the top-up $1 may be. A payment by x402 may be in the balance before its request makes the top-up. */
export const FIND_RECEIPT_START = statement({ at: column.timestamp() })`
  select least(top_up.created_at, min(payment.created_at)) as at from top_up left join payment using (order_number)
    where order_number = $1 group by top_up.created_at`;
/** The external key of the payment behind a transfer of its credit, its reversal or its restoration. */
const PAYMENT_KEY = `regexp_replace(transfer.external_key, '^(reverse|restore):[0-9]+:', '')`;
/**
 * The changes of the balance of the account $1 in the order of their times. $2 only those of this order and its payments, or
 * null. $3 and $4 the range of times. The credited sum of a top-up has no payment in another coin, which the operator assigned.
 * So such a payment is a change of its month alone. A reversal of a payment makes a debt, which is a change by its order. The payment of the
 * debt names no order, and is a change of its month.
 */
export const LIST_RECEIPT_LINES = statement(LINE)`
  select transfer.created_at as at, description, coalesce(transfer.order_number, payment.order_number) as order_number, coin, case when signed < 0 then '-' || units else units end as units, network, tx_id, signed as amount_micros,
    (sum(signed) over ())::bigint as total_micros
  from transfer
    cross join lateral (select case when credit = 'available:' || $1 then amount_micros else -amount_micros end as signed) as amount
    left join payment on payment.account_id = $1
      and (payment.external_key = ${PAYMENT_KEY} or payment.id = substring(transfer.external_key from '^assign:(.*)$'))
  where transfer.account_id = $1 and ('available:' || $1 in (debit, credit) or $2::text is not null and debit = 'owed:' || $1)
    and ($2::text is null or coalesce(transfer.order_number, payment.order_number) = $2 and (
      payment.id is null or payment.mode = 'X402' or coin = (select crypto from top_up where top_up.order_number = $2)))
    and transfer.created_at >= $3 and transfer.created_at < $4
  order by transfer.created_at, transfer.id limit ${RECEIPT_LINES_MAX}`;
