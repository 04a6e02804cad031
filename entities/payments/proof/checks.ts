/**
 * The checks of the proof of the books. Each compares a table with the ledger. Checks that read most transfers have
 * `readsAll`. The proof since a mark leaves them to the whole proof.
 */
import { WRONG_USAGE_SQL } from '../../accounts/usage.ts';
import * as column from '../../database/column.ts';
import { statement } from '../../database/statement.ts';
import { OPERATOR_ACCOUNT } from '../../history/audit.ts';
import { CHANGED_MONTHS_SQL } from '../closed-month.ts';
import { EXCHANGE, PAYOUTS, SUSPENSE } from '../ledger.ts';
import { overdrawnSql } from '../movement.ts';
import { INSOLVENT_SQL, OVERDRAWN_ACCOUNTS_SQL } from '../solvency.ts';

/** The wrong rows that the proof names of each kind of fault. */
export const ROWS_MAX = 20;

/** The states before the service writes a payment into the ledger. */
const UNPOSTED = `'OBSERVED', 'CONFIRMING', 'DROPPED'`;

/** The first of the rows whose micro-USD differ together from the total $1 of their ledger account. */
const differingSql = (rows: string): string => `
  select coalesce(min(id), '(none)') as row from (${rows}) as own having coalesce(sum(micros), 0) <> $1::bigint`;

/** Whether a row of `transfer` charges another price for a whole month than that of its row of `server`. */
const IS_WRONG_CHARGE = `transfer.service_code = server.service_code
  and (transfer.kind = 'renewal' or external_key = 'capture:' || order_number)
  and price_month_micros <> amount_micros - case transfer.kind when 'capture' then setup_fee_micros else 0 end`;

/** Each statement finds the ids of wrong rows, as `row`. It gets the total of the ledger account `total` as $1. */
export const CHECKS = [
  {
    table: 'payment',
    detail: 'The payment was credited, and no transfer has its amount and its coin.',
    readsAll: true,
    wrong: `select payment.id as row from payment left join transfer using (external_key)
      where status not in (${UNPOSTED}) and (credited_micros > 0 or mode = 'X402')
        and (amount_micros is distinct from credited_micros
          or mode = 'CRYPTO' and description like 'Top-up in %' and description <> 'Top-up in ' || coin)`,
  },
  {
    table: 'transfer',
    detail: 'The transfer credits a payment that does not exist, or was not credited.',
    readsAll: true,
    wrong: `select transfer.id as row from transfer left join payment using (external_key)
      where external_key ~ '^(pay|x402):' and (payment.id is null or status in (${UNPOSTED}))`,
  },
  {
    table: 'top_up',
    detail: 'The credited amount of the top-up differs from its transfers.',
    readsAll: true,
    // A payment by x402 may be credited or assigned before a repeated request makes its top-up. Chains may remove payments.
    wrong: `select id as row from top_up
      left join (
        select coalesce(transfer.order_number, payment.order_number, assigned.order_number) as order_number,
          sum(amount_micros) as micros
        from transfer left join payment using (external_key)
          left join payment as assigned on assigned.mode = 'X402' and transfer.external_key = 'assign:' || assigned.id
        where (kind = 'topup' or assigned.id is not null) and credit = 'available:' || transfer.account_id
        group by 1) as posted
        using (order_number)
      left join (
        select order_number, sum(payment.credited_micros) as micros from payment join top_up using (order_number)
        where payment.status in ('REVERSED', 'WRITTEN_OFF') and reversals > 0 and (coin = crypto or payment.mode = 'X402')
        group by 1) as removed
        using (order_number)
      where status = 'CONFIRMED' and credited_micros
        <> coalesce(posted.micros, 0) - coalesce(removed.micros, 0) + bonus_micros - reversed_bonus_micros`,
  },
  {
    table: 'server',
    detail: 'The ledger holds money for a server that is over.',
    readsAll: true,
    // A failed dedicated order keeps its hold until its host is free. It loses its address then.
    wrong: `select server.id as row from server
      join (
        select order_number, sum(case when credit like 'held:%' then amount_micros else -amount_micros end) as micros
        from transfer where debit like 'held:%' or credit like 'held:%' group by order_number) as held using (order_number)
      where held.micros < 0 or (held.micros > 0
        and (status = 'DELETED' or status = 'FAILED' and (kind <> 'DEDICATED' or ipv4 is null)))`,
  },
  {
    table: 'balance',
    detail: 'The account has money beside its debt.',
    wrong: 'select account_id as row from balance where owed_micros > 0 and available_micros + withheld_micros > 0',
  },
  {
    table: 'payment',
    detail: 'The payments in suspense differ from the ledger. This is the first of them.',
    total: SUSPENSE,
    wrong: differingSql(
      `select id, case when status in ('UNMATCHED', 'REVERSED') then credited_micros end as micros from payment`,
    ),
  },
  {
    table: 'payout',
    detail: 'The open payouts differ from the ledger. This is the first of them.',
    total: PAYOUTS,
    wrong: differingSql(
      `select id, amount_micros as micros from payout where status in ('REQUESTED', 'EXPORTED', 'BROADCAST')`,
    ),
  },
  {
    table: 'payment',
    detail: 'The part of the payment that payouts took differs from those payouts.',
    wrong: `select id as row
      from (select id, paid_out_micros as micros from payment where paid_out_micros > 0) as kept
      full join (
        select part ->> 'paymentId' as id, sum((part ->> 'micros')::bigint) as micros
        from payout cross join jsonb_array_elements(taken_from) as part where status <> 'CANCELLED' group by 1) as taken using (id)
      where kept.micros is distinct from taken.micros`,
  },
  {
    table: 'payout',
    detail: 'More coins leave this gateway than are final there.',
    wrong: overdrawnSql('true'),
  },
  {
    table: 'payout',
    detail: 'More leaves this account by payouts than is final there.',
    readsAll: true,
    wrong: OVERDRAWN_ACCOUNTS_SQL,
  },
  {
    table: 'payout',
    detail: 'The payout differs from its event payout.requested.',
    wrong: `select payout.id as row from payout join event on subject = payout.id
      where event.account_id = '${OPERATOR_ACCOUNT}' and type = 'payout.requested' and not jsonb_build_object(
        'accountId', payout.account_id, 'paymentId', payment_id, 'network', network, 'coin', coin, 'address', address,
        'units', units, 'reason', reason) @> data`,
  },
  {
    table: 'movement',
    detail: 'The movement differs from its transfers, or one of them is missing.',
    wrong: `select id as row from movement
      where amount_micros <> (
        select coalesce(sum(transfer.amount_micros), 0) from transfer
        where credit = source and debit in (target, '${EXCHANGE}') and external_key in (
          'movement:' || movement.id, 'payout-final:' || payout_id, 'payout-loss:' || payout_id))
      union all
      select id from transfer where external_key like 'movement:%'
        and not exists (select from movement where 'movement:' || movement.id = external_key)`,
  },
  {
    table: 'movement',
    detail: 'The movement differs from its payout or its event movement.recorded, or it is missing.',
    wrong: `select coalesce(movement.id, payout.id) as row from payout full join movement on payout_id = payout.id
      where (payout.status = 'FINAL' or payout_id is not null)
        and (movement.source, movement.coin, movement.units) is distinct from (payout.source, payout.coin, payout.units)
      union all
      select subject from event left join movement on movement.id = subject
      where account_id = '${OPERATOR_ACCOUNT}' and type = 'movement.recorded' and not jsonb_build_object(
        'source', source, 'target', target, 'coin', coin, 'units', units, 'txId', tx_id) @> data`,
  },
  {
    table: 'server',
    detail: 'The server is paid for longer than its transfers say.',
    readsAll: true,
    wrong: `select server.id as row from server
      join (
        select order_number, max(period_to) as until from transfer where kind in ('capture', 'renewal') group by 1) as paid
        using (order_number)
      where price_month_micros > 0 and paid_until > until`,
  },
  {
    table: 'server',
    detail: 'The price of the server differs from its last charge.',
    readsAll: true,
    // A resize charges a part of the price. Then the next renewal shows the price. The check reads each charge once.
    wrong: `select id as row from (
        select server.id, max(transfer.created_at) filter (where ${IS_WRONG_CHARGE}) as wrong_at,
          max(transfer.created_at) filter (where (${IS_WRONG_CHARGE}) is not true) as other_at
        from server join transfer using (order_number)
        where status in ('RUNNING', 'STOPPED') and transfer.kind in ('capture', 'renewal') group by 1) as charged
      where wrong_at > coalesce(other_at, '-infinity')`,
  },
  {
    table: 'usage_day',
    detail: 'The sums of usage differ from the transfers of the account.',
    readsAll: true,
    wrong: WRONG_USAGE_SQL,
  },
  {
    table: 'spending_month',
    detail: 'The spending of a credential in a month differs from its transfers.',
    readsAll: true,
    wrong: `select credential_id as row
      from spending_month as kept
      full join (
        select spender.id as credential_id, date_trunc('month', spent.created_at at time zone 'UTC')::date as month,
          sum(spent.amount_micros - coalesce(released.amount_micros, 0)) as micros
        from transfer spent left join transfer released
            on spent.kind = 'hold' and released.external_key = 'release:' || split_part(spent.external_key, ':', 2)
          cross join unnest(array[spent.credential_id, spent.limited_by]) as spender (id)
        where spent.debit = 'available:' || spent.account_id and num_nonnulls(spent.credential_id, spent.limited_by) > 0
          and spender.id is not null group by 1, 2
      ) as summed using (credential_id, month)
      where coalesce(kept.micros, 0) <> coalesce(summed.micros, 0)`,
  },
  {
    table: 'closed_month',
    detail: 'The transfers of the closed month have other totals than at its closing.',
    readsAll: true,
    wrong: CHANGED_MONTHS_SQL,
  },
  {
    table: 'balance',
    detail: 'The account has or spent another sum than it was given.',
    readsAll: true,
    wrong: INSOLVENT_SQL,
  },
].map(({ wrong, ...check }) => ({
  ...check,
  wrong: statement({ row: column.text(), count: column.int() })`
    select wrong.row, count(*) over ()::int as count from (${wrong}) as wrong group by 1 order by 1 limit ${ROWS_MAX}`,
}));
