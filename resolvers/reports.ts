/** Reports for the operator about a range of days. */
import { databaseTime } from '../entities/database/clock.ts';
import { type Income, type Sales, SUM_INCOME, SUM_SALES } from '../entities/reports.ts';
import { type DayRange, rangeOf } from './accounts/usage.ts';
import type { Context } from './context.ts';

export type { Income, Sales };

/** The sales of each tier in each region. @throws ApiError invalid_query */
export const sumSales = async (context: Context, days: DayRange): Promise<Sales[]> =>
  SUM_SALES.all(context.db, await boundsOf(context, days));

/** The payments of each coin. @throws ApiError invalid_query */
export const sumIncome = async (context: Context, days: DayRange): Promise<Income[]> =>
  SUM_INCOME.all(context.db, await boundsOf(context, days));

/** The first moment of the range, and the first one after it. */
async function boundsOf({ db }: Context, days: DayRange): Promise<[Date, Date]> {
  const { from, to } = rangeOf(days, days.to ?? (await databaseTime(db)));
  return [from, new Date(to.getTime() + 1)];
}
