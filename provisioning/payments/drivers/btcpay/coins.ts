/** Payment methods of a store, as coins. */
import type { Coin } from '../driver.ts';

/** How deep a payment on a chain has to be for BTCPay to call it settled. Unconfirmed ones never are. */
export const CONFIRMATIONS = { MediumSpeed: 1, LowMediumSpeed: 2, LowSpeed: 6 } as const;
export type SpeedPolicy = keyof typeof CONFIRMATIONS;

export interface MethodSettings {
  /** As BTCPay calls it: BTC-CHAIN, BTC-LN. */
  method: string;
  code: string;
  name: string;
  network: string;
  decimals: number;
  pegged: boolean;
}

/** What BTCPay calls the currency of a method. */
export const currencyOf = ({ method }: Pick<MethodSettings, 'method'>): string => method.split('-')[0]!;

/** What is paid over Lightning is final at once. */
export const coinOf = ({ method, ...coin }: MethodSettings, speed: SpeedPolicy): Coin => ({
  ...coin,
  confirmationsRequired: method.endsWith('-LN') ? 1 : CONFIRMATIONS[speed],
});

const BITCOIN = { decimals: 8, pegged: false };
export const DEFAULT_METHODS: readonly MethodSettings[] = [
  { ...BITCOIN, method: 'BTC-CHAIN', code: 'BTC', name: 'Bitcoin', network: 'bitcoin' },
  { ...BITCOIN, method: 'BTC-LN', code: 'BTC-LN', name: 'Bitcoin over Lightning', network: 'lightning' },
];
