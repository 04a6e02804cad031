/**
 * Usage: what changed the balance, as the ledger has it. The order of a server is shown when its price is held; if it is
 * not delivered, a refund beside it takes it back. So the amounts of all time sum up to the balance.
 */
import type { Queryable } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { idFloor } from '../../entities/ids.ts';
import { available } from '../../entities/payments/ledger.ts';
import { accountOf, type Context } from '../context.ts';
import { afterCursor, type Page, type PageRequest, pageFrom } from '../pages.ts';

const DAY_MS = 86_400_000;
/** The longest range. */
const MONTHS_MAX = 12;

export interface UsageItem {
  id: string;
  kind: 'order' | 'renewal' | 'refund' | 'topup' | 'bonus' | 'adjustment';
  orderNumber: string | null;
  serviceCode: string | null;
  description: string;
  /** The time that it pays for; where it pays for none, twice the moment. */
  from: Date;
  to: Date;
  hours: number | null;
  /** Micro-USD; negative if it was taken from the balance. */
  amountMicros: bigint;
}

export interface Usage extends Page<UsageItem> {
  from: Date;
  /** The last millisecond of the range. */
  to: Date;
  /** Of the whole range, not of the page alone. */
  totalMicros: bigint;
}

/** Days in UTC, the last one included. */
export interface DayRange {
  from?: Date | null | undefined;
  to?: Date | null | undefined;
}

/** A page of what changed the balance, newest first, with the total of the range. @throws ApiError invalid_query */
export async function findUsage(context: Context, request: PageRequest, days: DayRange): Promise<Usage> {
  const accountId = accountOf(context);
  const after = afterCursor(request, days);
  const { from, to } = rangeOf(days, new Date());
  const until = new Date(to.getTime() + 1);
  // Ids bound what is read. They are made a moment before their rows, perhaps by another clock, so by a day more.
  const bounds = [idFloor('xfr', from.getTime() - DAY_MS), idFloor('xfr', until.getTime() + DAY_MS)];
  const range = [accountId, available(accountId), ...bounds, from, until];
  const [totalMicros, rows] = await Promise.all([
    totalOf(context.db, range),
    context.db.query<UsageItem>(ITEMS, [...range, after, request.limit + 1]),
  ]);
  return { ...pageFrom(rows, request, days), from, to, totalMicros };
}

/** By default this month; without an end, until today; without a beginning, from the first of the month of the end. */
export function rangeOf(days: DayRange, now: Date): { from: Date; to: Date } {
  const lastDay = days.to ?? new Date(Math.floor(now.getTime() / DAY_MS) * DAY_MS);
  const from = days.from ?? new Date(Date.UTC(lastDay.getUTCFullYear(), lastDay.getUTCMonth(), 1));
  const refuse = (message: string) =>
    new ApiError('invalid_query', message, { errors: [{ field: 'to', code: 'out_of_range', message }] });
  if (from > lastDay) throw refuse('to is before from.');
  const longest = Date.UTC(from.getUTCFullYear(), from.getUTCMonth() + MONTHS_MAX, from.getUTCDate());
  if (lastDay.getTime() >= longest) throw refuse(`from and to are more than ${MONTHS_MAX} months apart.`);
  return { from, to: new Date(lastDay.getTime() + DAY_MS - 1) };
}

/** What touched what can be spent: captures do not, they take what was held. */
const RANGE = `
  transfer.account_id = $1 and (transfer.debit = $2 or transfer.credit = $2) and transfer.id >= $3 and transfer.id < $4
    and transfer.created_at >= $5 and transfer.created_at < $6`;
const AMOUNT = 'case when transfer.credit = $2 then transfer.amount_micros else -transfer.amount_micros end';

async function totalOf(db: Queryable, range: unknown[]): Promise<bigint> {
  const [row] = await db.query<{ micros: bigint }>(
    `select coalesce(sum(${AMOUNT}), 0)::bigint as micros from transfer where ${RANGE}`,
    range,
  );
  return row!.micros;
}

/** The time that an order, a resize, or the renewal of a suspended server pays for is known once it has been captured. */
const ITEMS = `
  with page as (
    select transfer.*, ${AMOUNT} as signed from transfer where ${RANGE} and ($7::text is null or transfer.id < $7)
    order by transfer.id desc limit $8),
  timed as (
    select page.*, coalesce(page.period_from, capture.period_from) as starts, coalesce(page.period_to, capture.period_to) as ends
    from page left join transfer capture on page.kind in ('hold', 'renewal') and page.period_from is null
      and capture.external_key = 'capture:' || split_part(page.external_key, ':', 2))
  select id, order_number, service_code, description, signed as amount_micros,
    case kind when 'hold' then 'order' when 'release' then 'refund' else kind end as kind,
    coalesce(starts, created_at) as from, coalesce(ends, created_at) as to,
    case kind when 'refund' then floor(extract(epoch from ends - starts) / 3600)
      else round(extract(epoch from ends - starts) / 3600) end::int as hours
  from timed order by id desc`;
