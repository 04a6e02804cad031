/**
 * The money of an account that payouts may take, and the payments that it came by. An account spends its bonuses last. A payout
 * never takes a bonus, because no coins came for it.
 */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { nullable, type Row } from '../database/table.ts';
import type { Queryable } from '../database/transaction.ts';
import { ADJUSTMENT, BONUS, REVENUE } from './ledger.ts';
import { IS_IN_BALANCE_SQL, IS_LASTING_SQL, Payment } from './payment.ts';
import type { Payout } from './payout.ts';
import { UNFINAL_PAYMENTS_SQL } from './withheld.ts';

/** The money that payouts leave to an account: payments that a chain may take back, and bonuses. */
export const unfinalSql = (bonuses: string) => `(${UNFINAL_PAYMENTS_SQL} + ${bonuses})`;
/** The available money of an account, less the other money. Withheld money covers that first. */
export const payableSql = (unfinal: string) =>
  `greatest(0, available_micros - greatest(0, ${unfinal} - withheld_micros))::bigint`;
/** The payable micro-USD of the account $1, which has $2 of unspent bonuses. */
const FIND_PAYABLE = statement({ micros: column.bigint() })`
  select ${payableSql(unfinalSql('$2::bigint'))} as micros from balance where account_id = $1`;

const MOMENT = {
  /** The change of all money of the account. */
  totalMicros: column.bigint(),
  /** Bonuses, less those taken back. */
  bonusMicros: column.bigint(),
  /** Refunds, and payments that are back on their chain. */
  refundMicros: column.bigint(),
  /** Additions by the operator, less deductions. */
  adjustedMicros: column.bigint(),
};
type Moment = Row<typeof MOMENT>;
const OWN = `('available:' || $1, 'held:' || $1, 'withheld:' || $1)`;
/** The sum of the transfers of a moment that fulfil one condition, less those that fulfil another. */
const net = (more: string, less: string) =>
  `coalesce(sum(amount_micros * ((${more})::int - (${less})::int)), 0)::bigint`;
/** A cancelled payout counts as one that never was. Its bonuses do count, because its top-up may earn another one by now. */
const IS_CANCELLED = `(split_part(external_key, ':', 1) in ('payout', 'payout-cancel')
  and split_part(external_key, ':', 2) in (select id from payout where account_id = $1 and status = 'CANCELLED'))`;
/**
 * The transactions that changed the money of the account $1, in their order. The transfers of a transaction have one time. So a
 * moment never shows the money in the middle of a transaction. A transaction takes its time when it begins. Then it may wait for
 * the account, and it makes its ids afterwards. So the ids give the order.
 */
const LIST_MOMENTS = statement(MOMENT)`
  select ${net(`credit in ${OWN}`, `debit in ${OWN}`)} as total_micros,
    ${net(`debit = '${BONUS}'`, `credit = '${BONUS}'`)} as bonus_micros,
    ${net(`kind = 'refund' and debit = '${REVENUE}' or external_key like 'restore:%'`, 'false')} as refund_micros,
    ${net(`debit = '${ADJUSTMENT}'`, `credit = '${ADJUSTMENT}'`)} as adjusted_micros
  from transfer where account_id = $1 and not ${IS_CANCELLED} and (debit in ${OWN} <> (credit in ${OWN}) or '${BONUS}' in (debit, credit))
  group by created_at order by min(id)`;

const larger = (a: bigint, b: bigint): bigint => (a > b ? a : b);
const smaller = (a: bigint, b: bigint): bigint => (a < b ? a : b);

/**
 * The bonuses that an account has not spent. It spends a bonus only when it has no other money. A refund returns spent bonuses
 * first, and so does a payment that is back. So does a sum by which the operator corrects an earlier deduction.
 */
export function unspentBonus(moments: readonly Moment[]): bigint {
  let [total, bonus, spent, adjusted] = [0n, 0n, 0n, 0n];
  for (const { totalMicros, bonusMicros, refundMicros, adjustedMicros } of moments) {
    const deducted = smaller(adjusted, 0n);
    [total, bonus, adjusted] = [total + totalMicros, bonus + bonusMicros, adjusted + adjustedMicros];
    const corrected = larger(smaller(adjusted, 0n) - deducted, 0n);
    spent = larger(spent - refundMicros - corrected, bonus - larger(total, 0n));
    spent = larger(smaller(spent, bonus), 0n);
  }
  return bonus - spent;
}

/** The available micro-USD of an account that a payout may take. The caller of a payout has locked the account. */
export async function payableMicros(db: Queryable, accountId: string): Promise<bigint> {
  const moments = await LIST_MOMENTS.all(db, [accountId]);
  const payable = await FIND_PAYABLE.first(db, [accountId, unspentBonus(moments)]);
  return payable?.micros ?? 0n;
}

/** Additions by the operator to the account $1, less deductions. Payouts but $2 that no payment covered used them up. */
const FIND_ADDED = statement({ micros: column.bigint() })`
  select greatest(0, (
      select ${net(`debit = '${ADJUSTMENT}'`, `credit = '${ADJUSTMENT}'`)} from transfer
      where account_id = $1 and '${ADJUSTMENT}' in (debit, credit))
    - (select coalesce(sum(amount_micros - taken), 0) from payout cross join lateral (
        select coalesce(sum((part ->> 'micros')::bigint), 0) as taken from jsonb_array_elements(taken_from) as part) as parts
      where account_id = $1 and payment_id is null and status <> 'CANCELLED' and id is distinct from $2))::bigint as micros`;
type Taking = Pick<Payout, 'accountId' | 'paymentId' | 'amountMicros'> & { id?: string | null };
const PART = { paymentId: Payment.columns.id, orderNumber: nullable(column.text()), micros: column.bigint() };
/** A part of a payment that a payout takes, with the order of the payment. */
export type PaidOutPart = Row<typeof PART>;
/**
 * Takes $2 micro-USD out of the payment $3, and then out of the final payments of the account $1. It takes the newest one first, and
 * at most as much as there is.
 */
const TAKE_OUT = statement(PART)`
  with locked as (
      select *, id is not distinct from $3 as is_first from payment
      where account_id = $1 and credited_micros > paid_out_micros and (${IS_LASTING_SQL} or id = $3 and ${IS_IN_BALANCE_SQL})
      order by id for update),
    rest as (
      select id, credited_micros - paid_out_micros as micros, sum(credited_micros - paid_out_micros) over (
          order by is_first desc, coalesce(credited_at, created_at) desc, id desc rows unbounded preceding) as until from locked),
    part as (select id, least(micros, $2::bigint - until + micros)::bigint as micros from rest where until - micros < $2::bigint)
  update payment set paid_out_micros = paid_out_micros + part.micros from part where payment.id = part.id
    returning payment.id as payment_id, order_number, part.micros`;
/**
 * Takes a payout from the balance out of the additions by the operator, and then out of the final payments. The coins of a
 * returned payment count as that payment, and no addition covers them.
 * @param id the payout, if it has a row already
 */
export async function takeOut(
  db: Queryable,
  { id = null, accountId, paymentId, amountMicros }: Taking,
): Promise<PaidOutPart[]> {
  const added = paymentId === null ? (await FIND_ADDED.first(db, [accountId, id]))!.micros : 0n;
  return added < amountMicros ? TAKE_OUT.all(db, [accountId, amountMicros - added, paymentId]) : [];
}
/** Gives the parts $1, a JSON array, back to their payments. */
export const PUT_BACK = statement(PART)`
  with part as (select "paymentId" as id, micros from jsonb_to_recordset($1) as given("paymentId" text, micros bigint)),
    locked as (select id from payment where id in (select id from part) order by id for update)
  update payment set paid_out_micros = paid_out_micros - part.micros
    from part where payment.id = part.id and (select count(*) from locked) >= 0
    returning payment.id as payment_id, order_number, part.micros`;
