/** The coins of the payment drivers, and the operator's switch for each. */

import { ApiError } from '../../entities/errors.ts';
import { OPERATOR_ACCOUNT } from '../../entities/history/audit.ts';
import { record } from '../../entities/history/record.ts';
import type { Coin } from '../../provisioning/index.ts';
import { actorOf, type Context } from '../context.ts';

/**
 * A coin of the driver, and whether it can be used at the moment: it has a rate, its chain is not behind, and the operator
 * has not switched it off.
 */
export type CoinView = Coin & { x402: boolean; rateMicros: bigint | null; available: boolean };

export async function listCoins({ db, provisioning }: Context): Promise<CoinView[]> {
  const [switches, exchangeRates, behind] = await Promise.all([
    db.query<{ code: string }>('select code from coin_switch where not available', [], 'coins switched off'),
    provisioning.payments.exchangeRates(db),
    provisioning.payments.chainsBehind(db),
  ]);
  const off = new Set(switches.map(({ code }) => code));
  return provisioning.payments.coins().map((coin) => {
    const rateMicros = exchangeRates.get(coin.code)!.quoteMicros;
    return { ...coin, rateMicros, available: rateMicros !== null && !behind.has(coin.network) && !off.has(coin.code) };
  });
}

/** @throws ApiError unknown_coin */
export async function findCoin(context: Context, wanted: string): Promise<CoinView> {
  const coin = (await listCoins(context)).find(({ code }) => code === wanted);
  if (!coin) throw new ApiError('unknown_coin');
  return coin;
}

/**
 * Switches a coin off or on, for new top-ups: those that there are go on, for money may be on its way to them.
 * @throws ApiError unknown_coin
 */
export async function updateCoin(context: Context, code: string, available: boolean): Promise<CoinView> {
  await findCoin(context, code);
  await context.db.transaction(async (tx) => {
    const changed = await tx.query(
      `insert into coin_switch as kept (code, available) values ($1, $2)
      on conflict (code) do update set available = excluded.available, updated_at = now() where kept.available <> excluded.available
      returning code`,
      [code, available],
    );
    if (changed.length)
      await record(tx, OPERATOR_ACCOUNT, code, { type: 'coin.updated', actor: actorOf(context), data: { available } });
  });
  return findCoin(context, code);
}

/** @throws ApiError coin_unavailable */
export async function requireCoin(context: Context, code: string): Promise<void> {
  if (!(await findCoin(context, code)).available) throw new ApiError('coin_unavailable');
}
