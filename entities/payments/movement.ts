/**
 * Movements of coins that the operator has sent: payouts, sweeps into the wallet, and fees of networks. The ledger accounts of
 * gateways and wallets so have as many coins as their addresses.
 */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { entity, nullable, type Row, type RowOf } from '../database/table.ts';
import { IS_LASTING_SQL } from './payment.ts';

export const Movement = entity('movement', {
  id: column.key(),
  /** The ledger account that the coins left: a gateway or a wallet. */
  source: column.text(),
  /** The ledger account that has them: a gateway, a wallet, `payouts` or `fees`. */
  target: column.text(),
  coin: column.text(),
  /** In the smallest unit of the coin, as a decimal string. */
  units: column.text(),
  /** The cost of the coins, by the average of their ledger account. */
  amountMicros: column.bigint(),
  txId: column.text(),
  payoutId: nullable(column.text()),
  createdAt: column.now(),
});
export type Movement = RowOf<typeof Movement>;

const HOLDING = {
  /** A ledger account: a gateway or a wallet. */
  name: column.text(),
  coin: column.text(),
  /** A decimal string; negative if more went out than came. */
  units: column.text(),
  costMicros: column.bigint(),
};
/** The coins that the books see in a ledger account. */
export type Holding = Row<typeof HOLDING>;
/** The ledger account of the coins of a payment. */
export const GATEWAY_SQL = `'gateway:' || case payment.mode when 'X402' then 'x402:' else '' end || payment.network`;
/** Whether the chain has removed the block of a payment, and no other block has it yet. Processors tell no blocks. */
const IS_REMOVED_SQL = '(height is not null and block_hash is null)';
/** Whether the coins of a payment are in its gateway. Writing off an unmatched payment moves no coins. The chain took removed ones. */
const IS_HELD_SQL = `(status = 'FINAL' or not ${IS_REMOVED_SQL} and (status in ('CREDITED', 'ASSIGNED', 'UNMATCHED')
  or status = 'WRITTEN_OFF' and reversals = 0 and missing_since is null))`;
/** Whether a payout sends the coins of a payment back, so that they leave with it. The operator may also return them by hand. */
const HAS_PAYOUT_SQL = `exists (select from payout where payment_id = payment.id and payout.status <> 'CANCELLED')`;
/** A payment that waits for its payout is still there. Coins that were written off cost nothing. */
const ALL_HOLDINGS = `
  select name, coin, sum(units)::text as units, sum(micros)::bigint as cost_micros from (
    select ${GATEWAY_SQL} as name, coin, units::numeric, case status when 'WRITTEN_OFF' then 0 else credited_micros end as micros
      from payment where ${IS_HELD_SQL} or status = 'RETURNED' and ${HAS_PAYOUT_SQL}
    union all select source, coin, -units::numeric, -amount_micros from movement
    union all select target, coin, units::numeric, amount_micros from movement where target like '%:%') as legs
  group by name, coin`;
/** The holding of the ledger account $1 in the coin $2. */
export const FIND_HOLDING = statement(
  HOLDING,
)`select * from (${ALL_HOLDINGS}) as holding where name = $1 and coin = $2`;
/** The gateways that have or had coins. */
export const LIST_GATEWAYS = statement({
  name: HOLDING.name,
})`select distinct name from (${ALL_HOLDINGS}) as holding where name like 'gateway:%'`;
/**
 * The units of the coin $2 that a payout from the balance may take out of the gateway $1. No chain can take them back. No payment
 * in suspense and no other payout needs them.
 */
export const FIND_PAYABLE_UNITS = statement({ units: column.text() })`
  select coalesce(sum(units), 0)::text as units from (
    select ${GATEWAY_SQL} as name, coin, units::numeric
      from payment where ${IS_LASTING_SQL} or status = 'RETURNED' and ${HAS_PAYOUT_SQL}
    union all select target, coin, units::numeric from movement
    union all select source, coin, -units::numeric from movement where payout_id is null
    union all select source, coin, -units::numeric from payout where status <> 'CANCELLED') as legs
  where name = $1 and coin = $2`;

/**
 * The gateways that lost more coins than came, or paid out more coins than are final there. Each row is `name coin`. An open
 * payout counts, because its coins may be on their way. Sweeps may take coins that are not final.
 * @param where a condition on the names and coins
 */
export const overdrawnSql = (where: string): string => `
  select name || ' ' || coin as row
  from (
    select ${GATEWAY_SQL} as name, coin, units::numeric, final_at is not null as lasts
      from payment where final_at is not null or ${IS_HELD_SQL}
    union all select target, coin, units::numeric, true from movement
    union all select source, coin, -units::numeric, false from movement where payout_id is null
    union all select source, coin, -units::numeric, true from payout where status <> 'CANCELLED'
    union all select ${GATEWAY_SQL}, coin, -units::numeric, true from payment where status = 'RETURNED' and not ${HAS_PAYOUT_SQL}) as legs
  where name like 'gateway:%' and ${where}
  group by name, coin having sum(units) < 0 or sum(units) filter (where lasts) < 0`;
/** The ledger account $1, if it is a gateway and overdrawn in the coin $2. */
export const FIND_OVERDRAWN = statement({ row: column.text() })`${overdrawnSql('name = $1 and coin = $2')}`;

/** The cost of these units of a holding, by the average; undefined: the books do not know it. */
export function costOf(holding: Holding | undefined, units: bigint): bigint | undefined {
  const held = BigInt(holding?.units ?? 0);
  return holding && held > 0n && units <= held ? (holding.costMicros * units) / held : undefined;
}

/** The addresses of top-ups on the network $1. Top-ups of other networks count as well, if they got payments there. */
export const LIST_DEPOSIT_ADDRESSES = statement({ address: column.text() })`
  select wallet_address as address from top_up where mode = 'CRYPTO' and network = $1 and wallet_address is not null
  union select address from payment where mode = 'CRYPTO' and network = $1
  order by 1`;
/**
 * The units of each coin of the gateway $1 in the books, and those by which its chain may differ. A reversed or removed payment
 * may come again, and so may a dropped one that a task still watches. A block may have a written-off one again. The transaction of an
 * exported payout may be under way.
 */
export const READ_GATEWAY = statement({
  coin: column.text(),
  units: column.text(),
  incoming: column.text(),
  outgoing: column.text(),
})`
  select coin, sum(units)::text as units, sum(incoming)::text as incoming, sum(outgoing)::text as outgoing from (
    select coin, units::numeric, 0 as incoming, 0 as outgoing from (${ALL_HOLDINGS}) as holding where name = $1
    union all
    select coin, 0, units::numeric, 0 from payment
      where $1 = ${GATEWAY_SQL} and (status in ('OBSERVED', 'CONFIRMING', 'REVERSED')
        or status in ('CREDITED', 'ASSIGNED', 'UNMATCHED') and ${IS_REMOVED_SQL}
        or status = 'WRITTEN_OFF' and block_hash is not null and (reversals > 0 or missing_since is not null)
        or status = 'DROPPED' and exists (select from task where subject = payment.id))
    union all
    select coin, 0, 0, units::numeric from payout where source = $1 and status in ('EXPORTED', 'BROADCAST')) as legs
  group by coin order by coin`;
