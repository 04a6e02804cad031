/**
 * What every payment driver implements: it names coins, gives addresses to pay to, and reports what came. It credits
 * nothing, and holds no key that can spend. There are two kinds: one reads a chain block by block (`chains`), the other
 * asks for each invoice what has come for it (`observe`).
 */
export interface Coin {
  /** Such as BTC or USDC-BASE. */
  code: string;
  name: string;
  /** Such as bitcoin or base: what its payments are known by, too. */
  network: string;
  /** The decimals of the coin's own unit. */
  decimals: number;
  confirmationsRequired: number;
  /** Whether it stands for a US dollar. */
  pegged: boolean;
  /** Micro-USD for one coin, where nobody has to be asked. */
  fixedRateMicros?: bigint;
}

/** What is to be paid, and by what it is recognised. */
export interface Invoice {
  orderNumber: string;
  /** The code of the coin. */
  coin: string;
  /** A decimal string in the coin. */
  amountCrypto: string;
  /** Micro-USD. */
  amountMicros: bigint;
  createdAt: Date;
  expiresAt: Date;
}

/** An invoice that a driver has opened. */
export interface OpenInvoice extends Omit<Invoice, 'expiresAt'> {
  walletAddress: string | null;
  reference: string | null;
}

export interface PaymentTarget {
  /** Used for this invoice only; as the driver's observed payments spell it. */
  walletAddress: string;
  /** BIP 21, EIP-681 or monero:. */
  paymentUri: string;
  /** How a payment processor calls the invoice. */
  reference?: string;
  /** Instead of what was asked for, where a payment processor makes the quote. */
  amountCrypto?: string;
}

/** A payment as a chain or a processor shows it now. */
export interface ObservedPayment {
  txId: string;
  /** The number of the output, or the place of the log in its own receipt. */
  position: number;
  /** The code of the coin that came. */
  coin: string;
  address: string;
  /** In the smallest unit of the coin; more than 0. */
  units: bigint;
  /** Blocks with and upon it; 0: it was announced. A reader of chains leaves it out: it is counted. */
  confirmations?: number;
  /** When it was paid, as far as the chain tells. */
  at?: Date | undefined;
}

export interface Block {
  height: number;
  hash: string;
  /** The hash of the block before. */
  parent: string;
  at: Date;
  /** What came to the addresses in question. */
  payments: ObservedPayment[];
}

/** Reads one chain. Whatever it throws is tried again. */
export interface ChainReader {
  readonly network: string;
  /** How often it is asked what is new. Default: as often as the worker looks at anything. */
  readonly pollSeconds?: number;
  /** The highest block. @throws Error if it is the head of another chain */
  head(signal: AbortSignal): Promise<{ height: number; hash: string }>;
  /** The hash of the block of that height on the chain as it is now; undefined: there is none. */
  hash(height: number, signal: AbortSignal): Promise<string | undefined>;
  /** A block, with what came to these addresses. @throws if the chain has changed meanwhile */
  block(height: number, addresses: ReadonlySet<string>, signal: AbortSignal): Promise<Block>;
  /**
   * The blocks of these heights, at once, for a chain that is far behind: the first, the last, and each in which something
   * came to these addresses. Asked only for blocks that lie deep. Absent: they have to be read one by one.
   * @throws if the chain has changed meanwhile
   */
  range?(from: number, to: number, addresses: ReadonlySet<string>, signal: AbortSignal): Promise<Block[]>;
  /** How many blocks it takes at once, now. */
  readonly rangeMax?: number;
  /** What is announced for these addresses, and in no block. Absent: the chain shows no such thing. */
  announced?(addresses: ReadonlySet<string>, signal: AbortSignal): Promise<ObservedPayment[]>;
}

/** A request that claims to come from a payment processor. */
export interface ProcessorWebhook {
  /** In lower case. */
  headers: Readonly<Record<string, string | undefined>>;
  body: Buffer;
}

/** The top-up that a processor webhook names; empty: none of ours. */
export interface WebhookSubject {
  orderNumber?: string;
  reference?: string;
}

export interface PaymentDriver {
  /** Its name in the configuration. */
  readonly name: string;
  /** Whether nobody pays anything. */
  readonly simulated: boolean;
  coins(): readonly Coin[];
  /**
   * What the addresses of a coin are derived from, so that two that derive alike share their numbers. Undefined: the driver
   * needs no number.
   */
  depositSource?(coin: string): string | undefined;
  /**
   * A fresh address for an invoice. Called within the request, so what has to ask somebody gives up soon.
   * @param deposit a number of the source that nobody had before
   */
  open(invoice: Invoice, deposit: number | undefined, signal: AbortSignal): Promise<PaymentTarget>;
  /** Whether it could tell now what has come. It is asked twice a minute; without it, it counts as reachable. */
  reachable?(signal: AbortSignal): Promise<boolean>;
  /** The chains that it reads block by block. */
  readonly chains?: readonly ChainReader[];
  /** All that has come for an invoice so far, and was not taken back. */
  observe?(invoice: OpenInvoice, signal: AbortSignal): Promise<ObservedPayment[]>;
  /** The top-up that a webhook of its processor names; undefined: its processor has not signed the webhook. */
  readWebhook?(webhook: ProcessorWebhook): WebhookSubject | undefined;
}

export interface GatewayKind<Settings> {
  /** JSON Schema (2020-12) of the settings; `driver`, which names the kind, is not among them. */
  schema: object;
  /** Asks nobody: a gateway that is down must not keep the service from starting. @throws Error with what is wrong */
  open(settings: Settings): PaymentDriver;
}
