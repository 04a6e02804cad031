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
  /** Of all lines of a top-up, also of those beyond the limit. */
  totalMicros: column.bigint(),
};
export type ReceiptLine = Row<typeof LINE>;
/** When the first change of the top-up $1 may be. A payment by x402 may be in the balance before its request makes the top-up. */
export const FIND_RECEIPT_START = statement({ at: column.timestamp() })`
  select least(top_up.created_at, min(payment.created_at)) as at from top_up left join payment using (order_number)
    where order_number = $1 group by top_up.created_at`;
/** The external key of the payment behind a transfer, or its id if the operator assigned it. */
const PAYMENT_KEY = `regexp_replace(transfer.external_key, '^(reverse|restore):[0-9]+:', '')`;
const PAYMENT_ID = `substring(transfer.external_key from '^assign:(.*)$')`;
const SIGNED = `case when credit = 'available:' || $1 then amount_micros else -amount_micros end`;

/** The first changes among the given transfers of the account $1, each with its payment. Each payment is found by its key. */
const linesSql = (given: string, where = 'true') => `
  with given as (${given}),
  change as (
    select given.*, payment.order_number as paid_order, payment.id as payment_id, mode, coin, units, network, tx_id
    from given left join lateral (
      select * from payment where account_id = $1 and external_key = payment_key
      union all select * from payment where account_id = $1 and id = assigned_id limit 1) as payment on true)
  select created_at as at, description, coalesce(order_number, paid_order) as order_number, coin,
    case when signed < 0 then '-' || units else units end as units, network, tx_id, signed as amount_micros,
    (sum(signed) over ())::bigint as total_micros
  from change where ${where} order by created_at, id limit ${RECEIPT_LINES_MAX}`;
const givenSql = (transfers: string) => `
  select transfer.id, created_at, description, order_number, ${SIGNED} as signed, ${PAYMENT_KEY} as payment_key, ${PAYMENT_ID} as assigned_id
  from ${transfers} where transfer.account_id = $1`;

/** The first changes of the balance of the account $1, in the order of their times. $2 and $3 the range. */
export const LIST_RECEIPT_LINES = statement(LINE)`${linesSql(`${givenSql('transfer')}
  and 'available:' || $1 in (debit, credit) and created_at >= $2 and created_at < $3
  order by created_at, transfer.id limit ${RECEIPT_LINES_MAX}`)}`;
/** The keys of the transfers of a payment. */
const KEYS = `
  select unnest(array['assign:' || id, external_key]) from payment where payment.order_number = $2
  union all select way || ':' || n || ':' || external_key
    from payment, generate_series(1, reversals) as n, unnest('{reverse,restore}'::text[]) as way where payment.order_number = $2`;
/**
 * The transfers of the top-up $2, and those of its payments from before it had them. An index finds each part. PostgreSQL might
 * otherwise read all transfers of the account.
 */
const OF_TOP_UP = `(
  select * from transfer where order_number = $2 and order_number like 'TOP-%'
  union all select * from transfer where order_number is null and external_key = any(array(${KEYS})) offset 0) as transfer`;
/**
 * The changes of the balance of the account $1 by the top-up $2, in the range from $3 to $4. The credited sum of a top-up has no
 * payment in another coin, which the operator assigned. So such a payment is a change of its month alone. A reversal of a payment
 * makes a debt, which is a change by its order. The payment of the debt names no order, and is a change of its month.
 */
export const LIST_TOP_UP_LINES = statement(LINE)`${linesSql(
  `${givenSql(OF_TOP_UP)}
  and ('available:' || $1 in (debit, credit) or debit = 'owed:' || $1) and created_at >= $3 and created_at < $4`,
  `payment_id is null or mode = 'X402' or coin = (select crypto from top_up where top_up.order_number = $2)`,
)}`;
