/**
 * The proof of the books: every kept balance is the sum of its transfers, and every payment, top-up and order stands in the
 * ledger as it says itself. It reads everything, so it is for now and then.
 */
import type { Queryable } from '../database/transaction.ts';
import { type Books, verifyBooks } from './ledger.ts';

/** A row that the ledger does not bear out. */
export interface Fault {
  /** Its table. */
  table: string;
  /** Its id. */
  row: string;
  detail: string;
}

export interface Proof extends Books {
  /** The first row that is wrong, by the order of the checks; null: none is. */
  firstFault: Fault | null;
}

/** @returns balanced only if nothing at all is wrong */
export async function proveBooks(db: Queryable): Promise<Proof> {
  const books = await verifyBooks(db);
  if (books.firstMismatch) {
    const { accountId, keptMicros, summedMicros } = books.firstMismatch;
    const detail = `It keeps ${keptMicros} micro-USD, and its transfers sum up to ${summedMicros}.`;
    return { ...books, firstFault: { table: 'balance', row: accountId, detail } };
  }
  for (const { table, detail, sql } of CHECKS) {
    const [wrong] = await db.query<{ row: string }>(`${sql} order by 1 limit 1`);
    if (wrong) return { ...books, balanced: false, firstFault: { table, row: wrong.row, detail } };
  }
  return { ...books, firstFault: null };
}

const PAYMENT_KEY = `'pay:' || payment.network || ':' || payment.tx_id || ':' || payment.position`;
const X402_KEY = `'x402:' || x402_payment.network || ':' || x402_payment.payer || ':' || x402_payment.nonce`;

/** What the chain has moved once, whatever became of it. */
const X402_MOVED = `'SETTLED', 'UNMATCHED', 'REVERSED', 'WRITTEN_OFF'`;

/** Each finds rows, by their id as "row", that should not be. */
const CHECKS = [
  {
    table: 'payment',
    detail: 'It was credited, and no transfer has what it says.',
    sql: `select payment.id as row from payment left join transfer on external_key = ${PAYMENT_KEY}
      where payment.status in ('CREDITED', 'UNMATCHED', 'REVERSED', 'WRITTEN_OFF') and credited_micros > 0
        and amount_micros is distinct from credited_micros`,
  },
  {
    table: 'transfer',
    detail: 'It credits a payment that is not there, or was not credited.',
    sql: `select transfer.id as row from transfer left join payment on external_key = ${PAYMENT_KEY}
      where external_key like 'pay:%' and (payment.id is null or payment.status in ('SEEN', 'MINED', 'ORPHANED'))`,
  },
  {
    table: 'x402_payment',
    detail: 'It was settled, and no transfer has what it says.',
    sql: `select x402_payment.id as row from x402_payment left join transfer on external_key = ${X402_KEY}
      where x402_payment.status in (${X402_MOVED}) and transfer.amount_micros is distinct from x402_payment.amount_micros`,
  },
  {
    table: 'transfer',
    detail: 'It credits a payment by x402 that is not there, or was not settled.',
    sql: `select transfer.id as row from transfer left join x402_payment on external_key = ${X402_KEY}
      where external_key like 'x402:%' and coalesce(x402_payment.status not in (${X402_MOVED}), true)`,
  },
  {
    table: 'top_up',
    detail: 'It says that it credited something else than its transfers.',
    // A payment by x402 whose request had died was credited before there was a top-up.
    sql: `select id as row from top_up
      left join (
        select coalesce(transfer.order_number, x402_payment.order_number) as order_number, sum(transfer.amount_micros) as micros
        from transfer left join x402_payment on external_key = ${X402_KEY}
        where kind in ('topup', 'bonus') and credit = 'available:' || transfer.account_id group by 1) as posted
        using (order_number)
      where status = 'CONFIRMED' and credited_micros <> coalesce(posted.micros, 0)`,
  },
  {
    table: 'server',
    detail: 'Nothing is to be paid for it any more, and something is held.',
    sql: `select server.id as row from server
      join (
        select order_number, sum(case when credit like 'held:%' then amount_micros else -amount_micros end) as micros
        from transfer where debit like 'held:%' or credit like 'held:%' group by order_number) as held using (order_number)
      where held.micros < 0 or (held.micros > 0 and status in ('FAILED', 'DELETED'))`,
  },
  {
    table: 'payment',
    detail: 'What payments have in suspense is not what the ledger has. This is the first that has some.',
    sql: `select coalesce(min(id), '(none)') as row from (
        select id, case status when 'UNMATCHED' then credited_micros when 'REVERSED' then reversed_micros end as micros from payment
        union all
        select id, case status when 'UNMATCHED' then amount_micros when 'REVERSED' then reversed_micros end from x402_payment
      ) as suspended
      having coalesce(sum(micros), 0)
        <> (select coalesce(sum(case when credit = 'suspense' then amount_micros else -amount_micros end), 0)
          from transfer where 'suspense' in (debit, credit))`,
  },
];
