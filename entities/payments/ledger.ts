/**
 * The ledger: append-only transfers of micro-USD from one ledger account (debit) to another (credit). So the books balance
 * by construction. A customer has four ledger accounts. The table `balance` keeps their sums, under CHECKs that refuse a
 * negative one. Reports sum system accounts on demand. Every order would change a kept sum, which would cost three quarters
 * of the throughput.
 *
 * Money pays the debt of its account first. So an account that owes has neither available nor withheld money.
 *
 * This file is the only writer of `transfer` and `balance`.
 */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { defaulting, entity, insert, nullable, type Row, type RowOf } from '../database/table.ts';
import { constraintOf, type Queryable, type Transaction } from '../database/transaction.ts';
import { ApiError } from '../errors.ts';
import { OPERATOR_ACCOUNT } from '../history/audit.ts';
import { newId } from '../ids.ts';
import { exactJson } from '../json.ts';

/** An order is a `hold`, then a `capture`. A `release` returns a hold, and a `refund` returns captured money. */
export const TRANSFER_KINDS = [
  'topup',
  'bonus',
  'hold',
  'capture',
  'release',
  'renewal',
  'traffic',
  'refund',
  'adjustment',
] as const;
export type TransferKind = (typeof TRANSFER_KINDS)[number];

export const Transfer = entity('transfer', {
  id: column.key(),
  /** The account of the customer. */
  accountId: column.text(),
  kind: column.oneOf(...TRANSFER_KINDS),
  debit: column.text(),
  credit: column.text(),
  amountMicros: column.bigint(),
  /** Unique: posting a transfer again changes nothing. */
  externalKey: column.text(),
  orderNumber: nullable(column.text()),
  serviceCode: nullable(column.text()),
  description: column.text(),
  periodFrom: nullable(column.timestamp()),
  periodTo: nullable(column.timestamp()),
  /** The API key or OAuth client that spent it, if any. */
  credentialId: nullable(column.text()),
  /** The credential with limits that created that one. The transfer counts into its spending limit, too. */
  limitedBy: nullable(column.text()),
  createdAt: column.now(),
});
export type Transfer = RowOf<typeof Transfer>;
/** The credential into whose spending limit a transfer counts. */
export type Spender = Pick<Transfer, 'credentialId' | 'limitedBy'>;

export const Balance = entity('balance', {
  accountId: column.key(),
  availableMicros: defaulting(column.bigint(), 0),
  heldMicros: defaulting(column.bigint(), 0),
  /** The debt of reversed payments: the negated sum of the ledger account. */
  owedMicros: defaulting(column.bigint(), 0),
  /** Refunds that wait until the payments of the account are final. */
  withheldMicros: defaulting(column.bigint(), 0),
  updatedAt: column.now(),
});
export type Balance = RowOf<typeof Balance>;

export const available = (accountId: string): string => `available:${accountId}`;
export const held = (accountId: string): string => `held:${accountId}`;
export const owed = (accountId: string): string => `owed:${accountId}`;
export const withheld = (accountId: string): string => `withheld:${accountId}`;
/** The earnings of servers. */
export const REVENUE = 'revenue';
/** The cost of bonuses. */
export const BONUS = 'bonus';
/** Adjustments by the operator. */
export const ADJUSTMENT = 'adjustment';
/** The external key of the transfer of an adjustment. @param key the operator's own name for it */
export const adjustmentKey = (key: string): string => `adjustment:${key}`;
/** Unmatched and reversed money, until the operator decides about it. */
export const SUSPENSE = 'suspense';
/** Coins that the operator must send, until their chain has them. */
export const PAYOUTS = 'payouts';
/** The cost of the operator's transactions. */
export const FEES = 'fees';
/** Gains and losses, because coins were worth something else when they came than when they left. */
export const EXCHANGE = 'exchange';
/** The income by a network of coins. */
export const gateway = (network: string): string => `gateway:${network}`;

const LOCKED = { accountId: column.text(), availableMicros: column.bigint(), owedMicros: column.bigint() };
const LOCK_ACCOUNTS = statement(LOCKED)`
  select account_id, available_micros, owed_micros from balance where account_id = any($1) order by account_id for update`;
/**
 * Locks accounts. A transaction that counts, spends or ends something of accounts locks them before all else (lock-order.ts).
 * So thirty requests at once are counted one after the other.
 * @returns the available and the owed micro-USD of each
 */
export const lockAccount = (tx: Transaction, ...accountIds: string[]): Promise<Row<typeof LOCKED>[]> =>
  LOCK_ACCOUNTS.all(tx, [accountIds]);

/** The available micro-USD of a customer, locked until the end of the transaction. */
export async function lockAvailable(tx: Transaction, accountId: string): Promise<bigint> {
  const [balance] = await lockAccount(tx, accountId);
  return balance!.availableMicros;
}

export interface Posting extends Partial<Spender> {
  kind: TransferKind;
  debit: string;
  credit: string;
  /** At least 0. The ledger leaves out postings of 0. */
  amountMicros: bigint;
  externalKey: string;
  orderNumber?: string;
  serviceCode?: string;
  description: string;
  periodFrom?: Date;
  periodTo?: Date;
}

/** Opens the balance of a new account. */
export const openBalance = (tx: Transaction, accountId: string): Promise<void> => insert(tx, Balance, { accountId });

const OPEN_OPERATOR = statement({})`
  insert into balance (account_id) values ('${OPERATOR_ACCOUNT}') on conflict do nothing`;
/** Opens the balance of the operator, and locks it with other accounts. Transfers of no customer belong to it. */
export async function lockOperator(tx: Transaction, ...accountIds: string[]): Promise<void> {
  await OPEN_OPERATOR.all(tx);
  await lockAccount(tx, OPERATOR_ACCOUNT, ...accountIds);
}

const { availableMicros, owedMicros, withheldMicros } = Balance.columns;
const POSTED = {
  accountId: column.text(),
  availableMicros: nullable(availableMicros),
  owedMicros: nullable(owedMicros),
  withheldMicros: nullable(withheldMicros),
};
type Posted = Row<typeof POSTED>;
/** Posts the transfers $1, a JSON array. Returns the account of each new one, with its balance afterwards if it has one. */
const POST = statement(POSTED)`
  with given as (
      select * from jsonb_to_recordset($1) as given(id text, "accountId" text, kind text, debit text, credit text, "amountMicros" bigint,
        "externalKey" text, "orderNumber" text, "serviceCode" text, description text, "periodFrom" timestamptz, "periodTo" timestamptz,
        "credentialId" text, "limitedBy" text)),
    locked as (select from balance where account_id in (select "accountId" from given) order by account_id for update),
    posted as (
      insert into transfer (id, account_id, kind, debit, credit, amount_micros, external_key,
        order_number, service_code, description, period_from, period_to, credential_id, limited_by)
      select id, "accountId", kind, debit, credit, "amountMicros", "externalKey", "orderNumber", "serviceCode", description, "periodFrom", "periodTo", "credentialId", "limitedBy"
      from given where (select count(*) from locked) >= 0 -- the balances are locked before anything is written
      on conflict (external_key) do nothing
      returning account_id, debit, credit, amount_micros),
    legs as (
      select account_id, debit as name, -amount_micros as micros from posted union all select account_id, credit, amount_micros from posted),
    sums as (
      select account_id, coalesce(sum(micros) filter (where name = 'available:' || account_id), 0)::bigint as available,
        coalesce(sum(micros) filter (where name = 'held:' || account_id), 0)::bigint as held,
        coalesce(-sum(micros) filter (where name = 'owed:' || account_id), 0)::bigint as owed,
        coalesce(sum(micros) filter (where name = 'withheld:' || account_id), 0)::bigint as withheld
      from legs group by account_id),
    kept as (
      update balance set updated_at = now(), available_micros = available_micros + available, held_micros = held_micros + held,
        owed_micros = owed_micros + owed, withheld_micros = withheld_micros + withheld
      from sums where balance.account_id = sums.account_id returning balance.*)
  select posted.account_id, available_micros, owed_micros, withheld_micros from posted left join kept using (account_id)`;

/**
 * Posts transfers of one customer. It leaves out known external keys, so posting again changes nothing.
 * @returns the number of new transfers
 * @throws ApiError insufficient_balance if one of the customer's accounts would become negative
 * @throws Error if the customer has no balance, or a posting names another customer's account
 */
export const post = (tx: Transaction, accountId: string, ...postings: Posting[]): Promise<number> =>
  postAll(
    tx,
    postings.map((posting) => ({ accountId, ...posting })),
  );

const HAS_TRANSFER = statement({ found: column.boolean() })`
  select exists (select from transfer where external_key = $1) as found`;
/** Returns whether a transfer with the external key exists. */
export async function isPosted(db: Queryable, externalKey: string): Promise<boolean> {
  const transfer = await HAS_TRANSFER.first(db, [externalKey]);
  return transfer!.found;
}

const NOT_NEGATIVE = /^balance_(available|held|withheld)_not_negative$/;

/** Posts transfers of many customers in one statement, like `post`. Then the debts of those customers are paid. */
export async function postAll(tx: Transaction, postings: (Posting & { accountId: string })[]): Promise<number> {
  const transfers = postings
    .filter(({ amountMicros }) => amountMicros > 0n)
    .map((posting) => ({ id: newId('xfr'), ...posting }));
  if (!transfers.length) return 0;
  try {
    const posted = await POST.all(tx, [exactJson(transfers)]);
    const unkept = posted.find(({ owedMicros }) => owedMicros === null);
    if (unkept) throw new Error(`${unkept.accountId} has no balance.`);
    const balances = new Map(posted.map((row) => [row.accountId, row]));
    for (const accountId of balances.keys()) tx.changed({ kind: 'balance', accountId, id: accountId });
    await postAll(tx, [...balances.values()].flatMap(debtPostings));
    return posted.length;
  } catch (error) {
    if (NOT_NEGATIVE.test(constraintOf(error) ?? '')) throw new ApiError('insufficient_balance');
    throw error;
  }
}
/** The postings by which an account pays its debt, from withheld money first. */
function debtPostings({ accountId, ...balance }: Posted): (Posting & { accountId: string })[] {
  const [debt, waiting, present] = [balance.owedMicros!, balance.withheldMicros!, balance.availableMicros!];
  const fromWithheld = least(debt, waiting);
  const pay = (debit: string, amountMicros: bigint) => ({
    ...{ accountId, kind: 'adjustment' as const, debit, credit: owed(accountId), amountMicros },
    ...{ externalKey: `debt:${newId('xfr')}`, description: 'Debt of a reversed payment' },
  });
  return [pay(withheld(accountId), fromWithheld), pay(available(accountId), least(debt - fromWithheld, present))];
}
const least = (a: bigint, b: bigint): bigint => (a < b ? a : b);

/**
 * The CTEs of a hold, as the head of a longer statement. `paid` has one row (account_id) if the balance covers the hold.
 * Takes the parameters $1 account, $2 micro-USD, $3 transfer id, $4 order number, $5 service code.
 * @param spender the numbers of the parameters of the `Spender`
 * @param allowed an expression for whether the account may spend
 */
export const holdSql = (spender: [credentialId: number, limitedBy: number], allowed = 'true'): string => `
  paid as (
    update balance set available_micros = available_micros - $2, held_micros = held_micros + $2, updated_at = now()
    where account_id = $1 and available_micros >= $2 and ${allowed} returning account_id),
  hold as (
    insert into transfer (id, account_id, kind, debit, credit, amount_micros, external_key, order_number, service_code, description, credential_id, limited_by)
    select $3, $1, 'hold', 'available:' || $1, 'held:' || $1, $2, 'hold:' || $4, $4, $5, 'Order of ' || $5, ${spender.map((place) => `$${place}::text`)} from paid)`;

const SPENDING = { id: column.key(), limitMicros: column.bigint(), spentMicros: column.bigint() };
/**
 * The spending limits of the credentials $1, and their spending in this calendar month (UTC). The credentials that one created
 * spend for it, too. Released holds and renewals do not count. A trigger of the transfers keeps the sums, which are exact
 * under the lock of the account.
 */
export const FIND_SPENDING = statement(SPENDING)`
  select id, spend_limit_micros as limit_micros, coalesce(micros, 0)::bigint as spent_micros
    from (select id, spend_limit_micros from api_key union all select id, spend_limit_micros from oauth_client) as credential
      left join spending_month on credential_id = id and month = date_trunc('month', now() at time zone 'UTC')
    where id = any($1::text[]) and spend_limit_micros is not null`;

/** Whether a deletion removed one of the credentials $1, and with it the spending limit. */
export const IS_SPENDER_DELETED = statement({ deleted: column.boolean() })`
  select exists (
    select from unnest($1::text[]) as spender (id)
    where id not in (select id from api_key union all select id from oauth_client)) as deleted`;

/** The day (UTC) of a row of `transfer`. An interval costs a tenth of the name of a time zone, which PostgreSQL looks up for each row. */
export const UTC_DAY = `(transfer.created_at at time zone interval '0')::date`;
const DAILY_TOTAL = {
  /** The beginning of the day (UTC). */
  day: column.timestamp(),
  kind: column.oneOf(...TRANSFER_KINDS),
  transfers: column.int(),
  /** Into accounts of customers. */
  creditedMicros: column.bigint(),
  /** Out of accounts of customers. */
  debitedMicros: column.bigint(),
};
/** A day's transfers of one kind, as they changed the money of customers. A hold moves within it, so it has both sides. */
export type DailyTotal = Row<typeof DAILY_TOTAL>;
/** The sums of $1 days (UTC) by kind of transfer, the latest day first. */
export const SUM_DAYS = statement(DAILY_TOTAL)`
  select day::timestamp at time zone 'UTC' as day, kind, count(*)::int as transfers,
      coalesce(sum(amount_micros) filter (where split_part(credit, ':', 2) = account_id), 0)::bigint as credited_micros,
      coalesce(sum(amount_micros) filter (where split_part(debit, ':', 2) = account_id), 0)::bigint as debited_micros
    from transfer cross join lateral (select ${UTC_DAY} as day) as own
    where created_at >= date_trunc('day', now(), 'UTC') - make_interval(days => $1 - 1)
    group by own.day, kind order by own.day desc, kind`;
