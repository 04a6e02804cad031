/** The coins of the payment drivers, and the operator's switch for each. */
import { LOCK_NAME } from '../../entities/database/lock-name.ts';
import { ApiError } from '../../entities/errors.ts';
import { FIND_COINS_OFF, SWITCH_COIN } from '../../entities/payments/coin.ts';
import type { Coin } from '../../provisioning/index.ts';
import type { Context } from '../context.ts';
import { recordByOperator } from '../record.ts';
import { requireSeen } from '../seen.ts';
import { unknownValue } from '../unknown.ts';

/**
 * A coin of a driver. It is available with a rate and a current chain, unless the operator has switched it off.
 */
export type CoinView = Coin & { x402: boolean; rateMicros: bigint | null; available: boolean };

export async function listCoins({ db, provisioning }: Context): Promise<CoinView[]> {
  const [switches, exchangeRates, behind] = await Promise.all([
    FIND_COINS_OFF.all(db),
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
  const coins = await listCoins(context);
  const coin = coins.find(({ code }) => code === wanted);
  if (!coin) throw unknownValue('unknown_coin', 'crypto', wanted, coins);
  return coin;
}

/**
 * Switches a coin off or on for new top-ups. Open top-ups continue, because payments may be on their way.
 * @param seen whether the operator saw it switched on; absent: any
 * @throws ApiError unknown_coin, validation_failed
 */
export async function updateCoin(
  context: Context,
  code: string,
  available: boolean,
  seen?: boolean | null,
): Promise<CoinView> {
  await findCoin(context, code);
  await context.db.transaction(async (tx) => {
    await LOCK_NAME.all(tx, [`coin ${code}`]);
    const off = await FIND_COINS_OFF.all(tx);
    const present = !off.some((one) => one.code === code);
    await requireSeen(tx, { what: code, present, seen, type: 'coin.updated', subject: code });
    if (await SWITCH_COIN.first(tx, [code, available]))
      await recordByOperator(tx, context, code, { type: 'coin.updated', data: { available } });
  });
  return findCoin(context, code);
}

/** @throws ApiError coin_unavailable */
export async function requireCoin(context: Context, code: string): Promise<void> {
  if (!(await findCoin(context, code)).available) throw new ApiError('coin_unavailable');
}
