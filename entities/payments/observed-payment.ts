/** Writes the observed payments of chains and gateways, and finds the payments and top-ups that they concern. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, nullable } from '../database/table.ts';
import { expression, moveStatement } from '../history/transition.ts';
import { cameToSql, PAYMENT_LIFECYCLE, Payment, requiredSql } from './payment.ts';
import { TopUp } from './top-up.ts';

/**
 * The external keys of a given payment. A contract may pay something else when another block has its transaction. So hash and
 * position do not fix the outcome. The first outcome has the plain key, and each other one has a key of its own.
 */
const PLAIN_KEY = `'pay:' || $2 || ':' || "txId" || ':' || given.position`;
const OUTCOME_KEY = `${PLAIN_KEY} || ':' || given.coin || ':' || lower(given.address) || ':' || given.units`;
const SAME_OWNER = '(known.coin, lower(known.address)) = (given.coin, lower(given.address))';
const SAME_OUTCOME = `(${SAME_OWNER} and known.units = given.units)`;

/**
 * The units of those payments that the service knows, by their places. $1 is a JSON array of payments, and $2 the network. The
 * units are the given ones, if the service knows that outcome.
 */
export const FIND_KNOWN = statement({ place: column.int(), units: Payment.columns.units })`
  select distinct on (place) place, known.units from jsonb_to_recordset($1::jsonb)
      as given(place int, "txId" text, position int, coin text, address text, units text)
    join payment as known on known.external_key in (${PLAIN_KEY}, ${OUTCOME_KEY}) and ${SAME_OWNER}
  order by place, known.units = given.units desc`;

/**
 * Writes payments to deposit addresses. A payment that exists keeps its state: `MOVE_OBSERVED` moves it. Its block is only
 * ever replaced by another block, because the chain sync itself notices removed blocks. Another outcome of its transaction is
 * another payment. But a block has one outcome, and so has a final payment: there the operator has only renamed a coin.
 * Processors ($3) tell one outcome, too.
 * $1 is a JSON array of payments, and $2 the network. $3 is the top-up that the worker asked about, or null. $4 and $5 are
 * height and hash of the block, or null. Without $3 the address finds the top-up, on another network only if none has it on
 * this one. Returns new and changed payments.
 *
 * A miner may write an earlier time into a block. The service believes at most two hours before it last had read the whole
 * chain without that block. Bitcoin's rules for times allow about as much.
 */
export const WRITE_OBSERVED = statement({ id: column.text(), orderNumber: Payment.columns.orderNumber })`
  with given as (
    select given.*,
      case when $3::text is not null or known.id is null or ${SAME_OUTCOME}
          or known.block_hash = $5 or known.status = 'FINAL' or known.final_at is not null
        then ${PLAIN_KEY} else ${OUTCOME_KEY} end as external_key,
      least(now(), greatest(coalesce(at, now()), reached_at - interval '2 hours')) as believed_at,
      case when given.confirmations > 0 or $4::int is not null
        then least(now(), greatest(coalesce("minedAt", now()), reached_at - interval '2 hours')) end as mined_at
    from jsonb_to_recordset($1::jsonb) as given(id text, "txId" text, position int, coin text, address text, units text,
      confirmations int, at timestamptz, "minedAt" timestamptz)
    left join chain on network = $2
    left join payment as known on known.external_key = ${PLAIN_KEY}),
  locked as (
    select from payment where external_key in (select external_key from given) order by id for update)
  insert into payment as kept (id, mode, external_key, network, tx_id, position, coin, address, account_id, order_number, units,
    status, height, block_hash, confirmations, seen_at, mined_at)
  select id, 'CRYPTO', external_key, $2, "txId", position, coin, address, account_id, order_number, units,
    case when mined_at is null then 'OBSERVED' else 'CONFIRMING' end, $4, $5, confirmations, believed_at, mined_at
  from given join lateral (
    select account_id, order_number from top_up
    where ($3::text is null and lower(wallet_address) = lower(given.address)) or order_number = $3
    order by (network = $2) desc, created_at desc limit 1) as top_up on true
  where (select count(*) from locked) >= 0 -- those are locked before any is written
  on conflict (external_key) do update set
    height = coalesce(excluded.height, kept.height),
    block_hash = coalesce(excluded.block_hash, kept.block_hash),
    mined_at = case
      when excluded.mined_at is null then case when $3::text is null then kept.mined_at end
      when excluded.block_hash is not distinct from kept.block_hash then least(excluded.mined_at, kept.mined_at)
      else excluded.mined_at end,
    confirmations = case when $3::text is null then greatest(excluded.confirmations, kept.confirmations) else excluded.confirmations end
  where kept.status in ('DROPPED', 'REVERSED', 'WRITTEN_OFF') or excluded.block_hash is distinct from kept.block_hash
    or excluded.confirmations <> kept.confirmations
  returning id, order_number`;

const IN_BLOCK = '(confirmations > 0 or block_hash is not null)';
/** Move those of the written payments $1 whose state allows it: into a block, or out of it. */
export const MOVE_OBSERVED = [
  moveStatement(PAYMENT_LIFECYCLE, 'CONFIRMING', `id = any($1::text[]) and ${IN_BLOCK}`),
  moveStatement(PAYMENT_LIFECYCLE, 'OBSERVED', `id = any($1::text[]) and not ${IN_BLOCK}`),
];
/** Take the payments of the network $1 above the height $2 out of their blocks: unconfirmed ones, then the others. */
export const UNMINE_PAYMENTS = [
  moveStatement(PAYMENT_LIFECYCLE, 'OBSERVED', 'network = $1 and height > $2 and block_hash is not null', {
    blockHash: expression('null'),
    minedAt: expression('null'),
    confirmations: expression('0'),
  }),
  statement({})`
    with above as (
      select id from payment where network = $1 and height > $2 and block_hash is not null order by id for update)
    update payment set block_hash = null, mined_at = null, confirmations = 0 from above where payment.id = above.id`,
];

/**
 * Drops uncredited payments of the network $1 outside of blocks, except the reported transactions $3 with their positions $4.
 * They are those of the top-up $2. Without it they are the announced ones.
 */
export const DROP_PAYMENTS = moveStatement(
  PAYMENT_LIFECYCLE,
  'DROPPED',
  `network = $1 and block_hash is null and case when $2::text is null then status = 'OBSERVED' else order_number = $2 end
    and (tx_id, position) not in (select * from unnest($3::text[], $4::int[]))`,
  { minedAt: expression('null'), confirmations: expression('0') },
);

/**
 * Marks payments to the address of the top-up $2 as missing, in the balance or in suspense. $1 is the network. The
 * reported transactions $3 with their positions $4 lose that mark. Returns the payments whose mark has changed.
 */
export const MARK_MISSING = statement({
  id: Payment.columns.id,
  orderNumber: Payment.columns.orderNumber,
  network: Payment.columns.network,
  txId: Payment.columns.txId,
  missingSince: Payment.columns.missingSince,
})`
  with shown as (select * from unnest($3::text[], $4::int[]) as shown(tx_id, position)),
    looked as (
      select id, exists (select 1 from shown where (shown.tx_id, shown.position) = (payment.tx_id, payment.position)) as there
      from payment where network = $1 and ${cameToSql('$2')} and status in ('CREDITED', 'ASSIGNED', 'FINAL', 'UNMATCHED')
      order by id for update)
  update payment set missing_since = case when there then null else now() end
  from looked where payment.id = looked.id and there = (missing_since is not null)
  returning payment.id, order_number, network, tx_id, missing_since`;

/** In the balance or in suspense, and not final. Indexes have these payments. */
const UNFINAL = `network = $1 and status in ('CREDITED', 'ASSIGNED')`;
const UNFINAL_IN_SUSPENSE = `network = $1 and status = 'UNMATCHED' and final_at is null`;
/** Makes credited payments final, and dates the finality of unmatched ones, which keep their state. */
const finish = (condition: string) =>
  moveStatement(
    PAYMENT_LIFECYCLE,
    'FINAL',
    `${UNFINAL} and ${condition}`,
    { finalAt: expression('now()') },
    {
      also: `
        suspended as (select id from payment where ${UNFINAL_IN_SUSPENSE} and ${condition} order by id for update),
        dated as (update payment set final_at = now() from suspended where payment.id = suspended.id)`,
    },
  );
/** The height of the lowest block with a payment of the network $1 that is not final; null: none. */
export const FIND_UNFINAL = statement({ height: nullable(column.int()) })`
  select min(height) as height from payment
  where ((${UNFINAL}) or (${UNFINAL_IN_SUSPENSE})) and block_hash is not null`;
/** Finishes payments of the network $1 whose blocks are not above the height $2. */
export const FINISH_BELOW = finish('block_hash is not null and height <= $2');
/** Finishes payments to the address of the top-up $2 on the network $1. Their gateway reports $3 confirmations. */
export const FINISH_REPORTED = finish(`${cameToSql('$2')} and confirmations >= $3 and missing_since is null`);

/** Finds payments that may have changed, and locks one of them if that is still so. @param id the parameter with its id */
const findAndLock = (condition: string, id: string) =>
  [
    statement({ id: column.text(), accountId: column.text() })`
      select id, account_id from payment where ${condition} order by id`,
    statement(Payment.columns)`
      select ${columnsOf(Payment)} from payment where id = ${id} and ${condition} for update`,
  ] as const;
/** Removed from its chain after its credit. Or reversed or given up, and again in a block up to the height $2. */
const CHANGED = `network = $1 and (
  status in ('CREDITED', 'ASSIGNED') and height is not null and block_hash is null
  or status in ('REVERSED', 'WRITTEN_OFF') and (reversals > 0 or missing_since is not null)
    and block_hash is not null and height <= $2)`;
export const [FIND_CHANGED, LOCK_CHANGED] = findAndLock(CHANGED, '$3');

const SHOWN_AGAIN = `network = $1 and ${cameToSql('$2')} and status in ('REVERSED', 'WRITTEN_OFF')
  and (reversals > 0 or missing_since is not null) and confirmations >= $5
  and (tx_id, position) in (select * from unnest($3::text[], $4::int[]))`;
/**
 * The removed payments to the address of the top-up $2 that have $5 confirmations again. $1 is the network. Its gateway reports the
 * transactions $3 with their positions $4.
 */
export const [FIND_SHOWN_AGAIN, LOCK_SHOWN_AGAIN] = findAndLock(SHOWN_AGAIN, '$6');

/**
 * Counts confirmations, and finds the top-ups of the network $1 that have something new, or had when a worker died. $2 the
 * height of the chain, $3 top-ups that the caller knows to have something new. $4 has the confirmations of each coin.
 */
export const COUNT_CONFIRMATIONS = statement({ orderNumber: column.text() })`
  with uncounted as (
    select id from payment
    where network = $1 and status in ('OBSERVED', 'CONFIRMING') and block_hash is not null and confirmations <> $2 - height + 1
    order by id for update),
  counted as (
    update payment set confirmations = $2 - height + 1 from uncounted where payment.id = uncounted.id
    returning order_number)
  select order_number from (
    select order_number from counted
    union select unnest($3::text[])
    union select payment.order_number from payment join top_up using (order_number)
      where payment.network = $1 and payment.status in ('OBSERVED', 'CONFIRMING')
        and (top_up.status not in ('CONFIRMING', 'CONFIRMED') or payment.confirmations >= ${requiredSql('$4')}
          -- The chain removed its block, and the top-up does not show that yet.
          or payment.confirmations < top_up.confirmations)
    union select order_number from top_up
      where network = $1 and status = 'CONFIRMING' and mode = 'CRYPTO' and expires_at <= now()) as due`;

/** Micro-USD: everybody can send a millionth of a dollar, so only larger payments are worth a look of their own. */
const NOTICED_MIN_MICROS = 1_000_000;
/**
 * The top-ups for which a gateway reports a new payment, or more confirmations of an uncredited one. $1 has the order numbers
 * or $2 the addresses. $3 has the transactions, $4 their amounts in the coin, and $5 their confirmations. Null as
 * transaction and amount: the top-up is paid in full.
 */
export const FIND_NEWS = statement({ orderNumber: TopUp.columns.orderNumber })`
  select distinct found.order_number
  from unnest($1::text[], $2::text[], $3::text[], $4::numeric[], $5::int[]) as given (order_number, address, tx_id, amount, confirmations)
  cross join lateral (
    select * from top_up where top_up.order_number = given.order_number
    union all select * from top_up where lower(wallet_address) = lower(given.address)) as found
  where mode = 'CRYPTO' and (given.amount is null or given.amount * rate_micros >= ${NOTICED_MIN_MICROS})
    and not exists (
      select from payment
      where payment.order_number = found.order_number and (given.tx_id is null or payment.tx_id = given.tx_id)
        and payment.status <> 'DROPPED' and (payment.status not in ('OBSERVED', 'CONFIRMING')
          or payment.confirmations >= least(given.confirmations, found.confirmations_required)))
  order by found.order_number`;
