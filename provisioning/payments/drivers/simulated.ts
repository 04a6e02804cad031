/**
 * Simulated payments: every invoice is paid by nobody after half of some seconds, and confirmed after all of them.
 * Addresses say so themselves, and cannot be paid to.
 */
import { createHash } from 'node:crypto';
import type { Coin, Invoice, Payment, PaymentAddress, PaymentDriver } from './driver.ts';

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
  return { code, name, network, decimals, confirmationsRequired, rateMicros: BigInt(usd) * 1_000_000n, x402: false };
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

  address({ orderNumber, coin, amountCrypto }: Omit<Invoice, 'createdAt'>): PaymentAddress {
    const walletAddress = `simulated-${digest(`address ${orderNumber}`).slice(0, 32)}`;
    const { network } = COINS.find(({ code }) => code === coin)!;
    return { walletAddress, paymentUri: `${network}:${walletAddress}?amount=${amountCrypto}` };
  }

  async observe({ orderNumber, coin, amountCrypto, createdAt }: Invoice, _signal: AbortSignal): Promise<Payment> {
    const seconds = (Date.now() - createdAt.getTime()) / 1000;
    if (seconds < this.#confirmSeconds / 2) return { receivedCrypto: '0', confirmations: 0, txIds: [] };
    const { confirmationsRequired } = COINS.find(({ code }) => code === coin)!;
    return {
      receivedCrypto: amountCrypto,
      confirmations: seconds < this.#confirmSeconds ? 0 : confirmationsRequired,
      txIds: [digest(`transaction ${orderNumber}`)],
    };
  }
}

const digest = (text: string) => createHash('sha256').update(text).digest('hex');
