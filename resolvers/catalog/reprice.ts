/** Gives the servers of a tier its present price, after a notice. The operator can take the notice back. */
import { FIND_TIER } from '../../entities/catalog.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { recordAll } from '../../entities/history/record.ts';
import { usdFromMicros } from '../../entities/money.ts';
import { ANNOUNCE_PRICE, COUNT_PROMISED, WITHDRAW_PRICE } from '../../entities/servers/renewal.ts';
import { writeMessages } from '../../provisioning/index.ts';
import { actorOf, type Context } from '../context.ts';
import { invalid } from '../errors.ts';
import { recordByOperator } from '../record.ts';
import { requireSeen } from '../seen.ts';

/** The shortest notice of a higher price, and the longest of any, in days. */
const [RAISE_DAYS_MIN, DAYS_MAX] = [14, 365];

/** The outcome: customers were told of it. */
export interface Announcement {
  /** The number of servers whose next price has changed. */
  servers: number;
  /** The number of servers that first take a lower price that was promised. */
  promised: number;
  priceMonthMicros: bigint;
}

/**
 * Announces the price of a tier to its servers. Each takes it at its first renewal after the notice. A server with the promise of
 * a lower price keeps that, so the operator repeats the announcement after its renewal.
 * @param version the version of the tier that the operator saw; absent: any
 * @throws ApiError unknown_service_code, or validation_failed for another version, or for a notice that is too short or too long
 */
export async function repriceServers(
  context: Context,
  code: string,
  noticeDays: number,
  version?: number | null,
): Promise<Announcement> {
  if (noticeDays > DAYS_MAX) throw invalid('notice_days', `A notice has at most ${DAYS_MAX} days.`);
  return announce(context, code, async (tx, { priceMonthMicros, version: present }) => {
    const change = { type: 'catalog.updated', subject: code } as const;
    await requireSeen(tx, { what: code, present, seen: version, field: 'version', ...change });
    const servers = await ANNOUNCE_PRICE.all(tx, [code, priceMonthMicros, noticeDays]);
    if (noticeDays < RAISE_DAYS_MIN && servers.some(({ rises }) => rises))
      throw invalid('notice_days', `A higher price needs a notice of ${RAISE_DAYS_MIN} days or more.`);
    return { servers, data: { repriced: servers.length, noticeDays } };
  });
}

/**
 * Withdraws the higher price that was announced to the servers of a tier. They keep their present price, and promises of lower ones.
 * @throws ApiError unknown_service_code
 */
export const withdrawReprice = (context: Context, code: string): Promise<Announcement> =>
  announce(context, code, async (tx) => {
    const servers = await WITHDRAW_PRICE.all(tx, [code]);
    return { servers, data: { repriceWithdrawn: servers.length } };
  });

type Tier = NonNullable<Awaited<ReturnType<typeof FIND_TIER.first>>>;
type Told = Awaited<ReturnType<typeof WITHDRAW_PRICE.all>>;

/** Changes the next prices of the servers of a tier, and tells their customers. */
async function announce(
  context: Context,
  code: string,
  change: (tx: Transaction, tier: Tier) => Promise<{ servers: Told; data: Record<string, number> }>,
): Promise<Announcement> {
  return context.db.transaction(async (tx) => {
    const tier = await FIND_TIER.first(tx, [code]);
    if (!tier) throw new ApiError('unknown_service_code');
    const { priceMonthMicros } = tier;
    const { servers, data } = await change(tx, tier);
    const priceMonthUsd = usdFromMicros(priceMonthMicros);
    await recordAll(
      tx,
      servers.map(({ accountId, orderNumber, nextPriceFrom }) => ({
        ...{ type: 'server.updated' as const, actor: actorOf(context), accountId, subject: orderNumber },
        data: nextPriceFrom
          ? { nextPriceMonthUsd: priceMonthUsd, nextPriceFrom: nextPriceFrom.toISOString() }
          : { nextPriceMonthUsd: null },
      })),
    );
    await tellAll(tx, context, servers, { code, priceMonthUsd });
    tx.changedAll(
      servers.map(({ accountId, orderNumber }) => ({ kind: 'server' as const, accountId, id: orderNumber })),
    );
    const told = { ...data, priceMonthUsd };
    await recordByOperator(tx, context, code, { type: 'catalog.updated', resource: 'tier', data: told });
    const { count: promised } = (await COUNT_PROMISED.first(tx, [code, priceMonthMicros]))!;
    return { servers: servers.length, promised, priceMonthMicros };
  });
}

/** Writes a message to each account, because a customer does not read each server every day. */
async function tellAll(
  tx: Transaction,
  context: Context,
  servers: Told,
  { code, priceMonthUsd }: { code: string; priceMonthUsd: number },
): Promise<void> {
  const tell = async (body: string, concerned: Told) => {
    const accountIds = [...new Set(concerned.map(({ accountId }) => accountId))].sort();
    const letter = { title: `Price of ${code}`, body, relatedType: null, relatedId: null };
    if (accountIds.length) await writeMessages(tx, 'OPERATOR', accountIds, letter, actorOf(context));
  };
  const { announced = [], withdrawn = [] } = Object.groupBy(servers, ({ nextPriceFrom }) =>
    nextPriceFrom ? 'announced' : 'withdrawn',
  );
  await tell(
    `From ${announced[0]?.nextPriceFrom?.toISOString()} on, a month of the tier ${code} costs ${priceMonthUsd} USD. ` +
      'Each of your servers of this tier takes the price at its first renewal after that. Until then, it keeps its present price.',
    announced,
  );
  await tell(
    `The announced price of the tier ${code} does not come. Your servers of this tier keep their present price.`,
    withdrawn,
  );
}
