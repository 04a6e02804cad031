/** The steps of the operator with prices, accounts and servers, and those of time that follow. */
import { resumeAccount, suspendAccount } from '../../../resolvers/accounts/account.ts';
import { closeAccount } from '../../../resolvers/accounts/closed-account.ts';
import { repriceServers, withdrawReprice } from '../../../resolvers/catalog/reprice.ts';
import { setPrice } from '../../../resolvers/catalog/tiers.ts';
import { accountOf } from '../../../resolvers/context.ts';
import { setBonusTiers } from '../../../resolvers/payments/bonus.ts';
import { removeServer } from '../../../resolvers/servers/delete.ts';
import { serverOf } from './customers.ts';
import type { Doing } from './town.ts';

const reason = 'The walk wants it';

export const ACCOUNTS: Doing<
  | 'price'
  | 'reprice'
  | 'withdrawPrice'
  | 'startPrice'
  | 'bonuses'
  | 'suspend'
  | 'resumeAll'
  | 'close'
  | 'remove'
  | 'endUnpaid'
> = {
  price: ({ contexts }, { serviceCode, micros, setupUsd }) =>
    setPrice(contexts[0]!, serviceCode, {
      priceMonthMicros: BigInt(micros),
      setupFeeMicros: BigInt(setupUsd) * 1_000_000n,
    }),
  reprice: ({ contexts }, { serviceCode, days }) => repriceServers(contexts[0]!, serviceCode, days),
  withdrawPrice: ({ contexts }, { serviceCode }) => withdrawReprice(contexts[0]!, serviceCode),
  startPrice: ({ shop, contexts }, { who }) =>
    shop.db.query('update server set next_price_from = now() where next_price_from is not null and account_id = $1', [
      accountOf(contexts[who]!),
    ]),
  bonuses: ({ contexts }, { percents }) =>
    setBonusTiers(
      contexts[0]!,
      percents
        .toSorted((a, b) => a - b)
        .map((bonusPercent, i) => ({ minMicros: BigInt(30 + i * 150) * 1_000_000n, bonusPercent })),
    ),
  suspend: ({ contexts }, { who, servers }) => suspendAccount(contexts[0]!, accountOf(contexts[who]!), reason, servers),
  resumeAll: async ({ contexts }) => {
    for (const context of contexts) await resumeAccount(contexts[0]!, accountOf(context));
  },
  // The credentials of the walk end, but its calls go on when the account resumes.
  close: ({ contexts }, { who, refund, isRare }) =>
    isRare && closeAccount(contexts[0]!, accountOf(contexts[who]!), { refund, reason }),
  remove: async (town, step) => {
    const orderNumber = await serverOf(town, step);
    return orderNumber && removeServer(town.contexts[0]!, { orderNumber, refund: step.refund, reason });
  },
  endUnpaid: ({ shop }) =>
    shop.db.query(`update server set suspended_at = now() - interval '8 days' where status = 'SUSPENDED'`),
};
