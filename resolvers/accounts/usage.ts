/**
 * Usage: the changes of the balance, from the ledger. An order appears when the ledger holds its price. If the delivery
 * fails, a refund follows. So the amounts of all time sum up to the balance.
 */
import { FIND_USAGE_TOTAL, LIST_USAGE, type UsageItem } from '../../entities/accounts/usage.ts';
import { databaseTime } from '../../entities/database/clock.ts';
import { ApiError } from '../../entities/errors.ts';
import { available } from '../../entities/payments/ledger.ts';
import { accountOf, type Context } from '../context.ts';
import { afterCursor, type Page, type PageRequest, pageFrom } from '../pages.ts';

const DAY_MS = 86_400_000;
/** The longest range, in months. */
const MONTHS_MAX = 12;

export interface Usage extends Page<UsageItem> {
  from: Date;
  /** The last millisecond of the range. */
  to: Date;
  /** The sum of the whole range, not only of the page. */
  totalMicros: bigint;
  /** The parts of the sum: top-ups and bonuses, less what was spent, and adjustments by the operator. */
  toppedUpMicros: bigint;
  spentMicros: bigint;
  adjustedMicros: bigint;
}

/** Days in UTC, inclusive. */
export interface DayRange {
  from?: Date | null | undefined;
  to?: Date | null | undefined;
}

/** Returns a page of the changes of the balance, newest first, with their sum. @throws ApiError invalid_query */
export async function findUsage(context: Context, request: PageRequest, days: DayRange): Promise<Usage> {
  const accountId = accountOf(context);
  const after = afterCursor(request, days);
  const { from, to } = rangeOf(days, days.to ?? (await databaseTime(context.db)));
  const until = new Date(to.getTime() + 1);
  const range = [accountId, available(accountId), from, until];
  const [total, rows] = await Promise.all([
    FIND_USAGE_TOTAL.first(context.db, [accountId, from, to]),
    LIST_USAGE.all(context.db, [...range, after, request.limit + 1]),
  ]);
  return { ...pageFrom(rows, request, days), from, to, ...total! };
}

/** Fills in the defaults of a range: it ends today, and begins on the first day of its last month. */
export function rangeOf(days: DayRange, now: Date): { from: Date; to: Date } {
  const lastDay = days.to ?? new Date(Math.floor(now.getTime() / DAY_MS) * DAY_MS);
  const from = days.from ?? new Date(Date.UTC(lastDay.getUTCFullYear(), lastDay.getUTCMonth(), 1));
  const refuse = (message: string) =>
    new ApiError('invalid_query', message, { errors: [{ field: 'to', code: 'out_of_range', message }] });
  if (from > lastDay) throw refuse('to must not be before the beginning of the range.');
  const longest = Date.UTC(from.getUTCFullYear(), from.getUTCMonth() + MONTHS_MAX, from.getUTCDate());
  if (lastDay.getTime() >= longest)
    throw refuse(`to must be at most ${MONTHS_MAX} months after the beginning of the range.`);
  return { from, to: new Date(lastDay.getTime() + DAY_MS - 1) };
}
