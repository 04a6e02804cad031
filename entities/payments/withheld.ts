/**
 * Refunds of captured money, while a chain can still remove the payment behind it. They wait in the ledger account `withheld`,
 * up to the sum of the payments that are not final. The bonus that depends on them counts as well. The rest is available at
 * once.
 */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { find } from '../database/table.ts';
import type { Transaction } from '../database/transaction.ts';
import { newId } from '../ids.ts';
import {
  available,
  Balance,
  held,
  isPosted,
  lockAccount,
  type Posting,
  post,
  postAll,
  REVENUE,
  Transfer,
  withheld,
} from './ledger.ts';
import { IS_LASTING_SQL, IS_UNFINAL_SQL } from './payment.ts';
import { BONUS_TIERS, STAYING } from './top-up.ts';

const UNFINAL = `from payment where payment.account_id = balance.account_id and ${IS_UNFINAL_SQL}`;
/** The sum of the payments of an account that are not final, or that their gateway reports no more. */
export const UNFINAL_PAYMENTS_SQL = `(select coalesce(sum(credited_micros), 0) ${UNFINAL})`;
/** The part of the bonus of a confirmed row of `top_up` that its lasting payments do not earn by themselves. */
const UNFINAL_BONUS_SQL = `(
  select case when count(*) filter (where goes) = 0 then 0
      else greatest(0, bonus_micros - reversed_bonus_micros - case
        when sum(paid) >= amount_micros then bonus_micros
        else least(bonus_micros, floor(sum(paid) * (case ${BONUS_TIERS.toReversed()
          .map(({ minMicros, bonusPercent }) => `when sum(paid) >= ${minMicros} then ${bonusPercent}`)
          .join(' ')} else 0 end) / 100)) end) end::bigint
  from (
    select ${IS_UNFINAL_SQL} as goes,
      case when ${IS_LASTING_SQL} and (coin = crypto or payment.mode = 'X402') then ${STAYING} else 0 end as paid
    from payment where payment.order_number = top_up.order_number) as own)`;
const UNFINAL_BONUSES_SQL = `(select coalesce(sum(${UNFINAL_BONUS_SQL}), 0) from top_up
    where status = 'CONFIRMED' and order_number in (select payment.order_number ${UNFINAL}))`;
/** The same, with the bonus that depends on them. */
const UNFINAL_SQL = `(${UNFINAL_PAYMENTS_SQL} + ${UNFINAL_BONUSES_SQL})::bigint`;
/** How much more of the refunds of the account $1 must wait. */
const FIND_ROOM = statement({ micros: column.bigint() })`
  select greatest(0, ${UNFINAL_SQL} - withheld_micros) as micros from balance where account_id = $1`;

/** The external key of the part of a refund that waits. */
const withheldKey = (externalKey: string): string => `withheld:${externalKey}`;
type Refund = Omit<Posting, 'kind' | 'debit' | 'credit'>;

/**
 * Refunds captured money to its account, which the caller has locked.
 * @param debit the ledger account that has the money
 * @throws Error if the customer has no balance
 */
export async function refund(tx: Transaction, accountId: string, given: Refund, debit = REVENUE): Promise<void> {
  const { micros: room } = (await FIND_ROOM.first(tx, [accountId]))!;
  const waiting = given.amountMicros < room ? given.amountMicros : room;
  const common = { ...given, kind: 'refund', debit } as const;
  await post(
    tx,
    accountId,
    { ...common, credit: available(accountId), amountMicros: given.amountMicros - waiting },
    {
      ...{ ...common, credit: withheld(accountId), amountMicros: waiting },
      externalKey: withheldKey(given.externalKey),
    },
  );
}

const KEPT = 'kept:';
/** The micro-USD of the refund that the row `server` keeps while it has its host; null: none. */
export const KEPT_REFUND_SQL = `(
  select amount_micros from transfer where external_key = '${KEPT}refund:' || server.order_number)`;

/** Fixes a refund that waits until `giveKept`, because its server still has its host. */
export async function keepRefund(tx: Transaction, accountId: string, given: Refund): Promise<void> {
  const externalKey = KEPT + given.externalKey;
  await post(tx, accountId, { ...given, kind: 'refund', debit: REVENUE, credit: held(accountId), externalKey });
}

/** Gives the refund with the external key that waited, once. The caller has locked its account. */
export async function giveKept(tx: Transaction, externalKey: string): Promise<void> {
  const kept = await find(tx, Transfer, { externalKey: KEPT + externalKey });
  if (!kept || (await isPosted(tx, externalKey)) || (await isPosted(tx, withheldKey(externalKey)))) return;
  const { accountId, amountMicros, description } = kept;
  const { orderNumber, serviceCode, periodFrom, periodTo } = kept;
  const of = { orderNumber, serviceCode, periodFrom, periodTo } as Partial<Refund>;
  await refund(tx, accountId, { ...of, amountMicros, description, externalKey }, held(accountId));
}

const releasable = (condition: string) => statement({ accountId: Balance.columns.accountId, micros: column.bigint() })`
  select account_id, withheld_micros - ${UNFINAL_SQL} as micros from balance
  where withheld_micros > 0 and withheld_micros > ${UNFINAL_SQL} and ${condition}`;
/** The accounts whose refunds need not wait any more, at most $1. */
export const FIND_RELEASABLE = releasable('true order by account_id limit $1::int');
const OF_ACCOUNTS = releasable('account_id = any($1)');

/** Makes refunds available that need not wait any more. */
export async function releaseWithheld(tx: Transaction, accountIds: readonly string[]): Promise<void> {
  await lockAccount(tx, ...accountIds);
  const found = await OF_ACCOUNTS.all(tx, [accountIds]);
  await postAll(
    tx,
    found.map(({ accountId, micros }) => ({
      ...{ accountId, kind: 'refund', debit: withheld(accountId), credit: available(accountId), amountMicros: micros },
      ...{ externalKey: `final:${newId('xfr')}`, description: 'Refunds that waited for a payment' },
    })),
  );
}
