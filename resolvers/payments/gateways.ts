/** Payment gateways: their chains, their exchange rates, and the webhooks of payment processors. */
import { findAll } from '../../entities/database/table.ts';
import { CoinRate, FIND_COINS_OFF } from '../../entities/payments/coin.ts';
import type { Gateway, ProcessorWebhook } from '../../provisioning/index.ts';
import type { Context } from '../context.ts';

export type GatewayView = Gateway;

/** Asks each gateway for its health, with a timeout of some seconds. The public listener is among them if it has a warning. */
export async function listGateways({ db, provisioning, signal, listenerWarning }: Context): Promise<Gateway[]> {
  const gateways = await provisioning.payments.gateways(db, signal);
  const warning = listenerWarning?.() ?? null;
  const listener = { name: 'public-listener', simulated: false, coins: [], reachable: true, warning, chains: [] };
  return warning ? [...gateways, listener] : gateways;
}

export interface ExchangeRateView {
  coin: string;
  /** Whether the operator has it switched on for new top-ups. */
  offered: boolean;
  /** Micro-USD for one coin, for new top-ups; null: its sources disagree, or report nothing. */
  quoteMicros: bigint | null;
  sources: CoinRate[];
}

export async function listExchangeRates({ db, provisioning }: Context): Promise<ExchangeRateView[]> {
  const [exchangeRates, rates, off] = await Promise.all([
    provisioning.payments.exchangeRates(db),
    findAll(db, CoinRate, {}, { coin: 'ASC', source: 'ASC' }),
    FIND_COINS_OFF.all(db),
  ]);
  return [...exchangeRates].map(([coin, { quoteMicros }]) => ({
    coin,
    offered: !off.some(({ code }) => code === coin),
    quoteMicros,
    sources: rates.filter((one) => one.coin === coin),
  }));
}

/** @returns whether a configured processor has signed it */
export const acceptProcessorWebhook = ({ db, provisioning }: Context, webhook: ProcessorWebhook): Promise<boolean> =>
  provisioning.payments.acceptProcessorWebhook(db, webhook);
