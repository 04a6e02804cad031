/** What every payment driver implements: it quotes coins, gives addresses to pay to, and reports what came. */

export interface Coin {
  /** Such as BTC or USDC-BASE. */
  code: string;
  name: string;
  network: string;
  /** The decimals of the coin's own unit. */
  decimals: number;
  confirmationsRequired: number;
  /** Micro-USD for one coin; null while no rate can be trusted. */
  rateMicros: bigint | null;
  x402: boolean;
}

/** What is to be paid, and by what it is recognised. */
export interface Invoice {
  orderNumber: string;
  coin: string;
  /** A decimal string in the coin's unit. */
  amountCrypto: string;
  createdAt: Date;
}

export interface PaymentAddress {
  walletAddress: string;
  /** BIP 21, EIP-681 or monero:. */
  paymentUri: string;
}

export interface Payment {
  /** A decimal string in the coin's unit; "0" if nothing came. */
  receivedCrypto: string;
  confirmations: number;
  txIds: string[];
}

export interface PaymentDriver {
  /** Its name in the configuration, and in the ledger. */
  readonly name: string;
  /** Whether nobody pays anything. */
  readonly simulated: boolean;
  coins(): readonly Coin[];
  /** A fresh address for an invoice; asks nobody. */
  address(invoice: Omit<Invoice, 'createdAt'>): PaymentAddress;
  /** Whether it could tell now what has come. It is asked twice a minute; without it, it counts as reachable. */
  reachable?(signal: AbortSignal): Promise<boolean>;
  /** What has come for an invoice so far. */
  observe(invoice: Invoice, signal: AbortSignal): Promise<Payment>;
}
