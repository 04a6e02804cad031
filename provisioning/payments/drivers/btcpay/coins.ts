/** The payment methods of a store as coins. */
import type { Coin } from '../driver.ts';

/** The confirmations after which BTCPay calls a payment settled. */
export const CONFIRMATIONS = { MediumSpeed: 1, LowMediumSpeed: 2, LowSpeed: 6 } as const;
export type SpeedPolicy = keyof typeof CONFIRMATIONS;

export interface MethodSettings {
  /** The id in BTCPay, such as BTC-CHAIN or BTC-LN. */
  method: string;
  code: string;
  name: string;
  network: string;
  decimals: number;
  pegged: boolean;
}

/** The currency of a method, as BTCPay names it. */
export const currencyOf = ({ method }: Pick<MethodSettings, 'method'>): string => method.split('-')[0]!;

/** The coin of a method. Lightning payments are final at once. */
export const coinOf = ({ method, ...coin }: MethodSettings, speed: SpeedPolicy): Coin => ({
  ...coin,
  confirmationsRequired: method.endsWith('-LN') ? 1 : CONFIRMATIONS[speed],
});

const BITCOIN = { decimals: 8, pegged: false };
export const DEFAULT_METHODS: readonly MethodSettings[] = [
  { ...BITCOIN, method: 'BTC-CHAIN', code: 'BTC', name: 'Bitcoin', network: 'bitcoin' },
  { ...BITCOIN, method: 'BTC-LN', code: 'BTC-LN', name: 'Bitcoin over Lightning', network: 'lightning' },
];
