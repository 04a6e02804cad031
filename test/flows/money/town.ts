/** A hosting company with three customers, two networks with two nodes each, x402, and an operator. */
import type { Coin } from '../../../provisioning/payments/drivers/driver.ts';
import type { Context } from '../../../resolvers/context.ts';
import type { PaymentHeaders } from '../../../resolvers/payments/sale.ts';
import { ChainDriver, COINS } from '../../payments/chains/chain.ts';
import type { RefusingDriver } from '../../servers/drivers/refusing-driver.ts';
import { contextOf, LIMITS, openShop, type Shop } from '../../setup/shop.ts';
import type { OnEnd } from '../../setup/spawn.ts';
import { CHAIN_COIN, CoinChain } from './coin-chain.ts';
import { crashing } from './crashes.ts';
import { ForkedNetwork } from './fork.ts';
import { type CoinCode, PRICES, type Step, type StepOf } from './step.ts';

/** A purchase by x402. A repeated payment is the same purchase. */
export interface Purchase {
  send: (context: Context, headers: PaymentHeaders) => Promise<unknown>;
  signature: string;
}

/** Coins that the operator has sent to a customer. */
interface Sent {
  network: string;
  coin: string;
  units: bigint;
}

export interface Town {
  shop: Shop;
  driver: RefusingDriver;
  /** The first does not tell which blocks are final. */
  networks: readonly [ForkedNetwork, ForkedNetwork];
  drivers: readonly [ChainDriver, ChainDriver];
  /** The chain of x402. */
  coins: CoinChain;
  /** The context of each customer. */
  contexts: Context[];
  /** The purchases of each customer by x402. */
  purchases: Purchase[][];
  crashes: ReturnType<typeof crashing>;
  /** The coins that the operator has sent, by payment or payout. */
  sent: Map<string, Sent>;
  /** Differs for each thing that the operator names. */
  names: Iterator<string, never>;
}

/** Does the steps of these kinds. */
export type Doing<K extends Step['kind']> = { [Kind in K]: (town: Town, step: StepOf<Kind>) => unknown };

/** Payments in the first coin that are worth more wait for the operator. */
const HOLD_ABOVE_MICROS = 2_000_000_000n;
const TAG: Coin = {
  ...{ code: 'TAG', name: 'A coin with finality', network: 'tagged', decimals: 18, pegged: false },
  ...{ confirmationsRequired: 1, fixedRateMicros: PRICES.TAG },
};

export async function openTown(onEnd: OnEnd): Promise<Town> {
  const networks = [new ForkedNetwork('testnet', false), new ForkedNetwork('tagged', true)] as const;
  const coins = new CoinChain();
  const drivers = [
    new ChainDriver(networks[0], [{ ...COINS[0]!, holdAboveMicros: HOLD_ABOVE_MICROS }, COINS[1]!, CHAIN_COIN]),
    new ChainDriver(networks[1], [TAG]),
  ] as const;
  const shop = await openShop(onEnd, {
    ...{ payments: drivers, x402: coins },
    // A machine without proof at the first look is a case for the recovery.
    proofSeconds: { VPS: 0, DEDICATED: 0 },
  });
  await shop.provisioning.prepare();
  await shop.provisioning.schedule();
  const limits = { ...LIMITS, servers: 12, unpaidTopupsPerDay: 1_000_000 };
  const contexts: Context[] = [];
  for (let i = 0; i < 3; i++) contexts.push({ ...contextOf(shop, await shop.account(0n)), limits });
  return {
    ...{ shop, driver: shop.driver, networks, drivers, coins, contexts },
    purchases: contexts.map(() => []),
    crashes: crashing(shop.db),
    sent: new Map(),
    names: named(),
  };
}

function* named(): Generator<string, never> {
  for (let n = 1; ; n++) yield `name-${n}`;
}

export const networkOf = ({ networks }: Town, name: string): ForkedNetwork | undefined =>
  networks.find(({ network }) => network === name);

/** Sets the exchange rate of a coin. Without a percentage the service does not know it. */
export function setRate({ drivers }: Town, code: CoinCode, percent: number): void {
  for (const { coinList } of drivers)
    for (const coin of coinList.filter((one) => one.code === code)) {
      delete coin.fixedRateMicros;
      if (percent) coin.fixedRateMicros = (PRICES[code] * BigInt(percent)) / 100n;
    }
}

/** The row that a step means. */
export const pick = <T>({ which }: Pick<Step, 'which'>, rows: readonly T[]): T | undefined =>
  rows[which % Math.max(1, rows.length)];
