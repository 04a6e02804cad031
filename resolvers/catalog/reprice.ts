/** Gives the servers of a tier its present price, after a notice. */
import { FIND_TIER } from '../../entities/catalog.ts';
import { ApiError } from '../../entities/errors.ts';
import { recordAll } from '../../entities/history/record.ts';
import { usdFromMicros } from '../../entities/money.ts';
import { ANNOUNCE_PRICE } from '../../entities/servers/renewal.ts';
import { actorOf, type Context } from '../context.ts';
import { invalid } from '../errors.ts';
import { recordByOperator } from '../record.ts';

/** The shortest notice of a higher price, and the longest of any, in days. */
const [RAISE_DAYS_MIN, DAYS_MAX] = [14, 365];

/** The outcome: customers were told of it. */
export interface Announcement {
  /** The number of servers whose next price has changed. */
  servers: number;
  priceMonthMicros: bigint;
}

/**
 * Announces the price of a tier to its servers. Each takes it at its first renewal after the notice.
 * @throws ApiError unknown_service_code, or validation_failed for a notice that is too short or too long
 */
export async function repriceServers(context: Context, code: string, noticeDays: number): Promise<Announcement> {
  if (noticeDays > DAYS_MAX) throw invalid('notice_days', `A notice has at most ${DAYS_MAX} days.`);
  return context.db.transaction(async (tx) => {
    const tier = await FIND_TIER.first(tx, [code]);
    if (!tier) throw new ApiError('unknown_service_code');
    const { priceMonthMicros } = tier;
    const servers = await ANNOUNCE_PRICE.all(tx, [code, priceMonthMicros, noticeDays]);
    if (noticeDays < RAISE_DAYS_MIN && servers.some(({ rises }) => rises))
      throw invalid('notice_days', `A higher price needs a notice of ${RAISE_DAYS_MIN} days or more.`);
    const nextPriceMonthUsd = usdFromMicros(priceMonthMicros);
    await recordAll(
      tx,
      servers.map(({ accountId, orderNumber, nextPriceFrom }) => ({
        ...{ type: 'server.updated' as const, actor: actorOf(context), accountId, subject: orderNumber },
        data: nextPriceFrom
          ? { nextPriceMonthUsd, nextPriceFrom: nextPriceFrom.toISOString() }
          : { nextPriceMonthUsd: null },
      })),
    );
    tx.changed(
      ...servers.map(({ accountId, orderNumber }) => ({ kind: 'server' as const, accountId, id: orderNumber })),
    );
    const data = { repriced: servers.length, noticeDays, priceMonthUsd: nextPriceMonthUsd };
    await recordByOperator(tx, context, code, { type: 'catalog.updated', resource: 'tier', data });
    return { servers: servers.length, priceMonthMicros };
  });
}
