/** Writes down what drivers sight. Nothing is credited here. */
import type { Queryable } from '../../../entities/database/transaction.ts';
import { newId } from '../../../entities/ids.ts';
import type { Block, ObservedPayment } from '../drivers/driver.ts';

/** Where observed payments are from. */
export interface Origin {
  network: string;
  /** The block that they are in. */
  block?: Pick<Block, 'height' | 'hash'>;
  /** The top-up that was asked about. Absent: found by the address. */
  orderNumber?: string;
}

/**
 * Payments to addresses of ours, as they are now. An observation again changes what is known of the block; what has been
 * credited stays so. Those to other addresses are left out.
 * @returns the order numbers of the top-ups for which something is new
 */
export async function writeObserved(
  db: Queryable,
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
  const rows = await db.query<{ orderNumber: string }>(RECORD, [
    JSON.stringify(given),
    network,
    orderNumber ?? null,
    block?.height ?? null,
    block?.hash ?? null,
  ]);
  return [...new Set(rows.map((row) => row.orderNumber))];
}

/** A chain that is synced says itself when a block is gone; without one, an observation only adds. */
const RECORD = `
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
    confirmations = case when $3::text is null then greatest(excluded.confirmations, kept.confirmations) else excluded.confirmations end,
    status = case
      when kept.status not in ('SEEN', 'MINED', 'ORPHANED') then kept.status
      when $3::text is null and kept.status = 'MINED' then 'MINED'
      else excluded.status end
  where kept.status in ('ORPHANED', 'REVERSED', 'WRITTEN_OFF') or excluded.block_hash is distinct from kept.block_hash
    or excluded.confirmations <> kept.confirmations
  returning order_number`;

/** What was announced and is not any more, or was asked about and is not there: taken back, if it was not credited. */
export async function orphanUnobserved(
  db: Queryable,
  { network, orderNumber }: Pick<Origin, 'network' | 'orderNumber'>,
  payments: readonly ObservedPayment[],
): Promise<string[]> {
  const rows = await db.query<{ orderNumber: string }>(
    `with unsighted as (
        select id from payment
        where network = $1 and status = any($2) and block_hash is null and ($3::text is null or order_number = $3)
          and (tx_id, position) not in (select * from unnest($4::text[], $5::int[])) order by id for update)
      update payment set status = 'ORPHANED', confirmations = 0 from unsighted where payment.id = unsighted.id
      returning order_number`,
    [
      network,
      orderNumber === undefined ? ['SEEN'] : ['SEEN', 'MINED'],
      orderNumber ?? null,
      payments.map(({ txId }) => txId),
      payments.map(({ position }) => position),
    ],
  );
  return [...new Set(rows.map((row) => row.orderNumber))];
}
