/** The steps of customers. */
import type { Database } from '../../../entities/database/database.ts';
import { ApiError } from '../../../entities/errors.ts';
import { newId } from '../../../entities/ids.ts';
import type { TopUp } from '../../../entities/payments/top-up.ts';
import { parseUnits } from '../../../provisioning/payments/top-ups/amount.ts';
import type { Context } from '../../../resolvers/context.ts';
import { cancelTopUp, createTopUp } from '../../../resolvers/payments/billing.ts';
import type { PaymentHeaders } from '../../../resolvers/payments/sale.ts';
import { deleteServer } from '../../../resolvers/servers/delete.ts';
import { orderServer } from '../../../resolvers/servers/order.ts';
import { updateServer } from '../../../resolvers/servers/update.ts';
import type { Step, StepOf } from './step.ts';
import { type Doing, networkOf, type Purchase, pick, type Town } from './town.ts';

const ORDER = { serviceCode: 'vps-1', region: 'ams', os: 'debian-13', autoRenew: true };

const latest = (db: Database, { viewer }: Context): Promise<TopUp[]> =>
  db.query<TopUp>(
    `select order_number, mode, network, crypto, wallet_address, amount_crypto
      from top_up where account_id = $1 order by id desc limit 8`,
    [viewer!.accountId],
  );
export const topUpOf = async ({ shop, contexts }: Town, step: Step): Promise<TopUp | undefined> =>
  pick(step, await latest(shop.db, contexts[step.who]!));
const invoiceOf = async ({ shop, contexts }: Town, step: Step): Promise<TopUp | undefined> =>
  pick(
    step,
    (await latest(shop.db, contexts[step.who]!)).filter(({ mode }) => mode === 'CRYPTO'),
  );
/** A server of the customer of the step. */
export const serverOf = async ({ shop, contexts }: Town, step: Step, isStopped = false): Promise<string | undefined> =>
  pick(
    step,
    await shop.db.query<{ orderNumber: string }>(
      `select order_number from server where account_id = $1 and status <> 'DELETED' and ($2 = 'any' or status = $2)
        order by id desc limit 8`,
      [contexts[step.who]!.viewer!.accountId, isStopped ? 'STOPPED' : 'any'],
    ),
  )?.orderNumber;

/** The last customer is poor, so that her renewals often lack money. */
const amountOf = (who: number, usd: number): bigint => BigInt(who === 2 ? 30 + (usd % 40) : usd) * 1_000_000n;

export const CUSTOMERS: Doing<
  'topUp' | 'pay' | 'payOther' | 'cancel' | 'order' | 'delete' | 'resize' | 'power' | 'buy' | 'repeat'
> = {
  topUp: ({ contexts }, { who, usd, crypto }) => createTopUp(contexts[who]!, { amountUsd: amountOf(who, usd), crypto }),
  pay: async (town, step) => {
    const one = await invoiceOf(town, step);
    if (!one) return;
    const { coinList } = town.drivers.find(({ chains }) => chains[0].network === one.network)!;
    const { decimals } = coinList.find(({ code }) => code === one.crypto)!;
    const units = (parseUnits(one.amountCrypto, decimals) * BigInt(step.percent)) / 100n;
    networkOf(town, one.network)!.chain.pay(one.walletAddress!, units, { coin: one.crypto });
  },
  payOther: async (town, step) => {
    const one = await invoiceOf(town, step);
    const [first, second] = town.networks;
    if (one?.network === first.network && step.isElsewhere)
      second.chain.pay(one.walletAddress!, 10n ** 15n, { coin: 'TAG' });
    else if (one) first.chain.pay(one.walletAddress!, 500_000_000n, { coin: 'OTHER' });
  },
  cancel: async (town, step) => {
    const one = await topUpOf(town, step);
    return one && cancelTopUp(town.contexts[step.who]!, one.orderNumber);
  },
  order: ({ contexts }, { who, serviceCode }) => orderServer(contexts[who]!, { ...ORDER, serviceCode }),
  delete: async (town, step) => {
    const one = await serverOf(town, step);
    return one && deleteServer(town.contexts[step.who]!, one);
  },
  resize: async (town, step) => {
    const one = await serverOf(town, step, true);
    return one && updateServer(town.contexts[step.who]!, one, { serviceCode: 'vps-2' });
  },
  power: async (town, step) => {
    const one = await serverOf(town, step);
    return one && updateServer(town.contexts[step.who]!, one, { powerState: step.isOn ? 'ON' : 'OFF' });
  },
  buy: async (town, step) => {
    const { usd, who, validSeconds, isTaken } = step;
    const send = (as: Context, headers: PaymentHeaders): Promise<unknown> =>
      usd === null ? orderServer(as, ORDER, headers) : createTopUp(as, { amountUsd: amountOf(who, usd) }, headers);
    const asked = await send(town.contexts[who]!, { mode: 'X402' }).catch((error: ApiError) => error);
    if (!(asked instanceof ApiError)) throw asked;
    const signature = town.coins.sign(asked, `0x${String(who).padStart(40, '0')}`, validSeconds, isTaken);
    const purchase = { send, signature };
    town.purchases[who]!.unshift(purchase);
    const isBought = await request(town, step, purchase);
    if (isBought && (validSeconds > 600 || validSeconds < 6))
      throw new Error(`The service accepted an authorization that is valid for ${validSeconds} seconds.`);
  },
  repeat: async (town, step) => {
    const one = pick(step, town.purchases[step.who]!.slice(0, 8));
    if (one) await request(town, step, one);
  },
};

/**
 * Sends a payment by x402. The request may die, and it does not wait for another request with the same payment.
 * @returns whether it was answered
 */
async function request(
  { coins, contexts, crashes }: Town,
  { who, mood, later, crash }: StepOf<'buy' | 'repeat'>,
  { send, signature }: Purchase,
): Promise<boolean> {
  coins.mood = mood;
  if (crash) crashes.next(crash);
  const context = { ...contexts[who]!, requestId: newId('req'), signal: AbortSignal.abort() };
  try {
    return await Promise.race([send(context, { signature }).then(() => true), coins.death().then(() => false)]);
  } finally {
    coins.mood = later;
  }
}
