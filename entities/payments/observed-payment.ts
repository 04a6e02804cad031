/** Writes the observed payments of chains and gateways, and finds the payments and top-ups that they concern. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf } from '../database/table.ts';
import type { Queryable, Transaction } from '../database/transaction.ts';
import { expression, moveStatement } from '../history/transition.ts';
import { PAYMENT_LIFECYCLE, PAYMENT_STATUSES, Payment } from './payment.ts';

/**
 * Writes payments to deposit addresses. A payment that exists keeps its state: the caller moves it. Its block is only ever
 * replaced by another block, because the chain sync itself notices removed blocks.
 * $1 is a JSON array of payments, and $2 the network. $3 is the top-up that the worker asked about, or null. $4 and $5 are
 * height and hash of the block, or null. Without $3 the address finds the top-up. Returns new and changed payments.
 */
export const WRITE_OBSERVED = statement({
  id: column.text(),
  orderNumber: column.text(),
  status: column.oneOf(...PAYMENT_STATUSES),
  confirmations: column.int(),
})`
  with given as (
    select * from jsonb_to_recordset($1::jsonb) as given(id text, "txId" text, position int, coin text, address text, units text,
      confirmations int, at timestamptz)),
  known as (
    select from payment where network = $2 and (tx_id, position) in (select "txId", position from given) order by id for update)
  insert into payment as kept (id, network, tx_id, position, coin, address, account_id, order_number, units, status, height,
    block_hash, confirmations, seen_at)
  select id, $2, "txId", position, coin, address, account_id, order_number, units,
    case when confirmations > 0 or $4::int is not null then 'MINED' else 'SEEN' end, $4, $5, confirmations, least(now(), coalesce(at, now()))
  from given join lateral (
    select account_id, order_number from top_up
    where network = $2 and case when $3::text is null then wallet_address = given.address else order_number = $3 end
    order by created_at desc limit 1) as top_up on true
  where (select count(*) from known) >= 0 -- those are locked before any is written
  on conflict (network, tx_id, position) do update set
    height = coalesce(excluded.height, kept.height),
    block_hash = coalesce(excluded.block_hash, kept.block_hash),
    confirmations = case when $3::text is null then greatest(excluded.confirmations, kept.confirmations) else excluded.confirmations end
  where kept.status in ('ORPHANED', 'REVERSED', 'WRITTEN_OFF') or excluded.block_hash is distinct from kept.block_hash
    or excluded.confirmations <> kept.confirmations
  returning id, order_number, status, confirmations`;

const MOVE_OBSERVED = {
  SEEN: moveStatement(PAYMENT_LIFECYCLE, 'SEEN', 'id = any($1::text[])'),
  MINED: moveStatement(PAYMENT_LIFECYCLE, 'MINED', 'id = any($1::text[])'),
};
/** Moves those of the locked payments whose state allows it. */
export async function moveObserved(tx: Transaction, to: 'SEEN' | 'MINED', ids: readonly string[]): Promise<void> {
  if (ids.length) await MOVE_OBSERVED[to].all(tx, [ids]);
}

/** The identities of the payments that a gateway reports. */
type Reported = readonly Pick<Payment, 'txId' | 'position'>[];
const keysOf = (reported: Reported) => [reported.map(({ txId }) => txId), reported.map(({ position }) => position)];

const ORPHAN_PAYMENTS = moveStatement(
  PAYMENT_LIFECYCLE,
  'ORPHANED',
  `network = $1 and status = any($2::text[]) and block_hash is null and ($3::text is null or order_number = $3)
    and (tx_id, position) not in (select * from unnest($4::text[], $5::int[]))`,
  { confirmations: expression('0') },
);
/**
 * Orphans uncredited payments outside of blocks that a gateway does not report. They are those of one top-up. Without one
 * they are the announced payments of the network.
 */
export const orphanPayments = (
  db: Queryable,
  network: string,
  orderNumber: string | undefined,
  reported: Reported,
): Promise<Payment[]> => {
  const states = orderNumber === undefined ? ['SEEN'] : ['SEEN', 'MINED'];
  return ORPHAN_PAYMENTS.all(db, [network, states, orderNumber ?? null, ...keysOf(reported)]);
};

/** Takes the payments of the network $1 above the height $2 out of their blocks. */
export const UNMINE_PAYMENTS = statement({ id: column.text(), status: column.oneOf(...PAYMENT_STATUSES) })`
  with above as (
    select id from payment where network = $1 and height > $2 and block_hash is not null order by id for update)
  update payment set block_hash = null, confirmations = 0 from above where payment.id = above.id
  returning payment.id, status`;

const MARK_MISSING = statement({
  id: Payment.columns.id,
  orderNumber: Payment.columns.orderNumber,
  network: Payment.columns.network,
  txId: Payment.columns.txId,
  missingSince: Payment.columns.missingSince,
})`
  with shown as (select * from unnest($3::text[], $4::int[]) as shown(tx_id, position)),
    looked as (
      select id, exists (select 1 from shown where (shown.tx_id, shown.position) = (payment.tx_id, payment.position)) as there
      from payment where network = $1 and order_number = $2 and status = 'CREDITED' order by id for update)
  update payment set missing_since = case when there then null else now() end
  from looked where payment.id = looked.id and there = (missing_since is not null)
  returning payment.id, order_number, network, tx_id, missing_since`;

/**
 * Marks credited payments of a top-up as missing if the gateway does not report them. It clears the mark of the others.
 * @returns the payments whose mark has changed
 */
export const markMissing = (tx: Transaction, network: string, orderNumber: string, reported: Reported) =>
  MARK_MISSING.all(tx, [network, orderNumber, ...keysOf(reported)]);

/** Removed from its chain after it was credited. */
const GONE = `status = 'CREDITED' and height is not null and block_hash is null`;
export const FIND_GONE = statement({ id: column.text(), accountId: column.text() })`
  select id, account_id from payment where ${GONE} and network = $1`;
/** Locks the payment $1 if it is gone. */
export const LOCK_GONE = statement(Payment.columns)`
  select ${columnsOf(Payment)} from payment where id = $1 and ${GONE} for update`;

/**
 * Counts confirmations, and finds the top-ups of the network $1 that have something new, or had when a worker died. $2 the
 * height of the chain, $3 top-ups with announced payments.
 */
export const COUNT_CONFIRMATIONS = statement({ orderNumber: column.text() })`
  with uncounted as (
    select id from payment
    where network = $1 and status in ('SEEN', 'MINED', 'REVERSED', 'WRITTEN_OFF') and block_hash is not null and confirmations <> $2 - height + 1
    order by id for update),
  counted as (
    update payment set confirmations = $2 - height + 1 from uncounted where payment.id = uncounted.id
    returning order_number)
  select order_number from (
    select order_number from counted
    union select unnest($3::text[])
    union select payment.order_number from payment join top_up using (order_number)
      where payment.network = $1 and payment.status in ('SEEN', 'MINED')
        and (top_up.status not in ('CONFIRMING', 'CONFIRMED') or payment.confirmations >= top_up.confirmations_required
          -- The chain removed its block, and the top-up does not show that yet.
          or payment.confirmations < top_up.confirmations)
    union select order_number from payment where network = $1 and status in ('REVERSED', 'WRITTEN_OFF') and block_hash is not null
    union select order_number from top_up
      where network = $1 and status = 'CONFIRMING' and mode = 'CRYPTO' and expires_at <= now()) as due`;
