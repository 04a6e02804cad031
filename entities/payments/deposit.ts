/**
 * The numbers of deposit addresses. No number goes to two accounts. After the operator has restored an older database, the
 * numbers continue after a gap. The chain cannot tell the numbers of the lost days, because it does not show unpaid addresses.
 */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, entity, nullable, type RowOf } from '../database/table.ts';
import type { Queryable } from '../database/transaction.ts';
import { DEPOSIT_ADDRESS_SECONDS } from './top-up.ts';

/** Numbers that the service leaves out after a restore, or after a time without a look at the chain. */
export const DEPOSIT_GAP = 1_000;

export const Deposit = entity('deposit', {
  /** The source of the addresses, such as the fingerprint of an extended public key. */
  source: column.key(),
  /** The next number. */
  next: column.int(),
  /** The database that gave the last number. Null: an earlier version gave it. */
  databaseId: nullable(column.text()),
});
export type Deposit = RowOf<typeof Deposit>;

/**
 * The next number of the source $1. A dump gets another database when it is restored, and so does the state of an earlier time
 * another timeline.
 */
const TAKE_DEPOSIT = statement({ number: column.int() })`
  insert into deposit (source, next, database_id)
    select $1, 1, concat_ws('/', (select system_identifier from pg_control_system()), oid, left(pg_walfile_name(pg_current_wal_lsn()), 8))
    from pg_database where datname = current_database()
  on conflict (source) do update set database_id = excluded.database_id, next = deposit.next + 1
    + case when deposit.database_id <> excluded.database_id then ${DEPOSIT_GAP} else 0 end
  returning next - 1 as number`;

/** The numbers of a source that a time may have given out of which the restored database knows nothing. */
export const LostDeposit = entity('lost_deposit', {
  source: column.key(),
  /** The first of them. */
  first: { ...column.int(), primary: true },
  /** The first one after them. */
  beyond: column.int(),
});
export type LostDeposit = RowOf<typeof LostDeposit>;

/** Numbers that a restore leaves out. Nothing tells how many the lost time gave out, and free accounts can take many. */
export const LOST_NUMBERS = 1_000_000;

/** Leaves out numbers of each source, which the lost time may have given out. */
export const LOSE_DEPOSITS = statement({ source: column.text() })`
  with known as (select source, next from deposit order by source for update),
    lost as (
      insert into lost_deposit (source, first, beyond) select source, next, next + ${LOST_NUMBERS} from known)
  update deposit set next = known.next + ${LOST_NUMBERS} from known where deposit.source = known.source
  returning deposit.source`;

/** The lost numbers of the source $1. */
export const LIST_LOST_DEPOSITS = statement(LostDeposit.columns)`
  select ${columnsOf(LostDeposit)} from lost_deposit where source = $1 order by first`;

/** The next number of the source $1. */
export const NEXT_DEPOSIT = statement({ next: column.int() })`select next from deposit where source = $1`;

/**
 * Takes the number of an old top-up of the account $1 on the network $2 that never got a payment. A later payment to its
 * address belongs to the next top-up.
 */
export const REUSE_DEPOSIT = statement({ number: column.int(), walletAddress: column.text() })`
  with free as (
    select id, deposit from top_up
    where account_id = $1 and network = $2 and deposit is not null and status in ('EXPIRED', 'CANCELLED')
      and created_at < now() - interval '${DEPOSIT_ADDRESS_SECONDS} seconds'
      and not exists (select from payment where payment.order_number = top_up.order_number)
      and not exists (select from payment where payment.address = wallet_address and payment.order_number is null)
    order by id limit 1 for update skip locked)
  update top_up set deposit = null from free where top_up.id = free.id
  returning free.deposit as number, wallet_address`;

/** Takes an unused number of that source. */
export async function nextDeposit(db: Queryable, source: string): Promise<number> {
  const deposit = await TAKE_DEPOSIT.first(db, [source]);
  return deposit!.number;
}
