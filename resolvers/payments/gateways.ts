/** By what coins come in, how far each chain has been read, and what sources say that coins are worth. */

import { columnsOf } from '../../entities/database/table.ts';
import { CoinRate } from '../../entities/payments/coin-rate.ts';
import type { Gateway } from '../../provisioning/index.ts';
import type { Context } from '../context.ts';

export type GatewayView = Gateway;

/** Asks each gateway whether it is there, for some seconds at the most. */
export const listGateways = ({ db, provisioning, signal }: Context): Promise<Gateway[]> =>
  provisioning.gateways(db, signal);

export interface RateView {
  coin: string;
  /** Micro-USD for one coin, for new top-ups; null: its sources do not agree, or say nothing. */
  quoteMicros: bigint | null;
  sources: CoinRate[];
}

export async function listRates({ db, provisioning }: Context): Promise<RateView[]> {
  const [worths, said] = await Promise.all([
    provisioning.worths(db),
    db.query<CoinRate>(`select ${columnsOf(CoinRate)} from coin_rate order by coin, source`),
  ]);
  return [...worths].map(([coin, { quoteMicros }]) => ({
    coin,
    quoteMicros,
    sources: said.filter((one) => one.coin === coin),
  }));
}
