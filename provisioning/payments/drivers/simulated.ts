/**
 * Simulated payments. The driver reports a payment of every invoice after half the configured seconds, and confirms it after
 * all of them. Its addresses name the simulation, and cannot receive coins.
 */
import { createHash } from 'node:crypto';
import type { Coin, Invoice, ObservedPayment, OpenInvoice, PaymentDriver, PaymentTarget } from './driver.ts';

const COINS: readonly Coin[] = [
  coin('BTC', 'Bitcoin', 'bitcoin', 8, 2, 60_000),
  coin('LTC', 'Litecoin', 'litecoin', 8, 6, 80),
  coin('XMR', 'Monero', 'monero', 12, 10, 160),
  coin('ETH', 'Ether', 'ethereum', 18, 12, 2_500),
  coin('USDC-BASE', 'USD Coin on Base', 'base', 6, 10, 1),
];

function coin(
  code: string,
  name: string,
  network: string,
  decimals: number,
  confirmationsRequired: number,
  usd: number,
): Coin {
  const fixedRateMicros = BigInt(usd) * 1_000_000n;
  return { code, name, network, decimals, confirmationsRequired, pegged: usd === 1, fixedRateMicros };
}

export class SimulatedPayments implements PaymentDriver {
  readonly name = 'simulated';
  readonly simulated = true;
  readonly #confirmSeconds: number;

  constructor({ confirmSeconds }: { confirmSeconds: number }) {
    this.#confirmSeconds = confirmSeconds;
  }

  coins(): readonly Coin[] {
    return COINS;
  }

  async open({ orderNumber, coin, amountCrypto }: Invoice): Promise<PaymentTarget> {
    const walletAddress = `simulated-${digest(`address ${orderNumber}`).slice(0, 32)}`;
    return { walletAddress, paymentUri: `${coinOf(coin).network}:${walletAddress}?amount=${amountCrypto}` };
  }

  async observe(
    { orderNumber, coin, amountCrypto, walletAddress, createdAt }: OpenInvoice,
    _signal: AbortSignal,
  ): Promise<ObservedPayment[]> {
    const seconds = (Date.now() - createdAt.getTime()) / 1000;
    if (seconds < this.#confirmSeconds / 2) return [];
    const { confirmationsRequired, decimals } = coinOf(coin);
    const [whole, fraction = ''] = amountCrypto.split('.');
    return [
      {
        txId: digest(`transaction ${orderNumber}`),
        position: 0,
        coin,
        address: walletAddress!,
        units: BigInt(whole + fraction.padEnd(decimals, '0')),
        confirmations: seconds < this.#confirmSeconds ? 0 : confirmationsRequired,
      },
    ];
  }
}

const coinOf = (code: string): Coin => COINS.find((coin) => coin.code === code)!;
const digest = (text: string) => createHash('sha256').update(text).digest('hex');
