/**
 * The interface of payment drivers. A driver names coins, gives addresses, and reports payments. It credits nothing, and
 * holds no key that can spend. Some drivers read chains block by block (`chains`). The others report the payments of each
 * invoice (`observe`).
 */
import type { Nodes } from './nodes.ts';

export interface Coin {
  /** Such as BTC or USDC-BASE. */
  code: string;
  name: string;
  /** Such as bitcoin or base. It identifies payments together with the transaction. */
  network: string;
  /** The decimals of the coin's own unit. */
  decimals: number;
  confirmationsRequired: number;
  /** Confirmations of a final payment. Absent: those of the credit. Readers of chains leave it out. */
  finalConfirmations?: number;
  /** Whether the coin stands for a US dollar. */
  pegged: boolean;
  /** Micro-USD: a larger payment waits for the operator. Absent: none waits. */
  holdAboveMicros?: bigint;
  /** Micro-USD for one coin, where the rate needs no source. */
  fixedRateMicros?: bigint;
}

/** A requested payment. */
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
  /** The address of this invoice only, spelled as in observed payments. */
  walletAddress: string;
  /** BIP 21, EIP-681 or monero:. */
  paymentUri: string;
  /** The payment processor's own id of the invoice. */
  reference?: string;
  /** Replaces the requested amount, where a payment processor makes the quote. */
  amountCrypto?: string;
}

/** A payment as a chain or a processor reports it now. */
export interface ObservedPayment {
  txId: string;
  /** The number of the output, or the index of the log in its own receipt. */
  position: number;
  /** The code of the coin that came. */
  coin: string;
  address: string;
  /** In the smallest unit of the coin; more than 0. */
  units: bigint;
  /** Its block and the blocks above; 0: announced. Readers of chains leave it out, because the worker counts it. */
  confirmations?: number;
  /** The time of the payment, if the chain tells. */
  at?: Date | undefined;
  /** The time of its block. Absent: it came into a block when the worker saw that. */
  minedAt?: Date | undefined;
}

/** The announced payments of a chain. */
export interface Announced {
  payments: ObservedPayment[];
  /** Whether they are all: a reader may need several calls after its start. */
  isComplete: boolean;
}

export interface Block {
  height: number;
  hash: string;
  /** The hash of the block before. */
  parent: string;
  at: Date;
  /** The payments to deposit addresses. */
  payments: ObservedPayment[];
}

/** Finds the deposit addresses among these, in any spelling. Returns their own spelling by lower case. */
export type FindDeposits = (addresses: Iterable<string>) => Promise<ReadonlyMap<string, string>>;

export interface TokenCode {
  /** In lower case. */
  contract: string;
  /** SHA-256 in hexadecimal digits. */
  codeHash: string;
}

export type Head = Pick<Block, 'height' | 'hash' | 'at'>;

/** Reads one chain. */
export interface ChainReader {
  readonly network: string;
  /** Seconds between two polls. Default: the poll interval of the worker. */
  readonly pollSeconds?: number;
  /** The seconds after which a node without a new block counts as stopped. Absent: the chain has no steady blocks. */
  readonly staleSeconds?: number | undefined;
  readonly nodes: Nodes<ChainNode>;
}

/** Reads a chain through one node. The worker repeats calls that throw. */
export interface ChainNode {
  /** The highest block. @throws Error if the node is of another chain */
  head(signal: AbortSignal): Promise<Head>;
  /** The hash of the block at that height on the present chain; undefined: the node has none. */
  hash(height: number, signal: AbortSignal): Promise<string | undefined>;
  /**
   * A block with the payments to deposit addresses. The number of these does not change the number of requests.
   * @throws if the chain has changed meanwhile
   */
  block(height: number, find: FindDeposits, signal: AbortSignal): Promise<Block>;
  /**
   * Reads many deep blocks at once: the first, the last, and each with payments to deposit addresses. Absent: the worker
   * reads block by block.
   * @throws if the chain has changed meanwhile
   */
  range?(from: number, to: number, find: FindDeposits, signal: AbortSignal): Promise<Block[]>;
  /** The most blocks that a range may have now. */
  readonly rangeMax?: number;
  /** Announced payments to deposit addresses in no block yet. Absent: the chain does not show them. */
  announced?(find: FindDeposits, signal: AbortSignal): Promise<Announced>;
  /** The highest block that the chain cannot remove. Absent or undefined: the chain does not tell, and depth decides. */
  finalHeight?(signal: AbortSignal): Promise<number | undefined>;
  /**
   * The tokens of the chain whose code the operator has not pinned, with the hash of their code. Absent: it has none.
   * @throws Error if a token has other decimals than the operator says, or other code than the pinned one
   */
  tokenCodes?(signal: AbortSignal): Promise<TokenCode[]>;
  /** The units that these addresses have together, by the code of the coin. Absent or undefined: the driver cannot tell. */
  balances?(addresses: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, bigint> | undefined>;
  /**
   * The block of a transaction; null: it is announced, and in no block; undefined: the node finds none. Absent: the driver cannot
   * look up transactions.
   * @throws Error if the node lacks the index for it
   */
  heightOf?(txId: string, signal: AbortSignal): Promise<number | null | undefined>;
}

/** A payment that a processor or wallet received, for one of its invoices. It has the order number or the address. */
export interface Received {
  orderNumber?: string;
  address?: string;
  /** Absent: the processor only tells that the invoice is paid in full. */
  payment?: Pick<ObservedPayment, 'txId' | 'coin' | 'units'>;
  confirmations: number;
}

/** A request that claims to come from a payment processor. */
export interface ProcessorWebhook {
  /** In lower case. */
  headers: Readonly<Record<string, string | undefined>>;
  body: Buffer;
}

/** The top-up that a processor webhook names; empty: no top-up. */
export interface WebhookSubject {
  orderNumber?: string;
  reference?: string;
}

export interface PaymentDriver {
  /** The name in the configuration. */
  readonly name: string;
  /** Whether its payments are simulated. */
  readonly simulated: boolean;
  coins(): readonly Coin[];
  /**
   * The source from which it derives addresses of a coin. Equal sources share their numbers. Undefined: the driver needs
   * no number.
   */
  depositSource?(coin: string): string | undefined;
  /**
   * A fresh address for an invoice. The request waits for it, so calls to a processor time out early.
   * @param deposit an unused number of the source
   */
  open(invoice: Invoice, deposit: number | undefined, signal: AbortSignal): Promise<PaymentTarget>;
  /**
   * Spells an address as its chain does; undefined: the chain has no such address. Absent: its chain knows any spelling.
   */
  spell?(address: string): string | undefined;
  /** The address of a number of its source, for drivers whose chains x402 may use. */
  depositAddress?(deposit: number): Promise<string>;
  /** Whether it can report payments now. The worker asks twice a minute. Absent: it counts as reachable. */
  reachable?(signal: AbortSignal): Promise<boolean>;
  /** The chains that it reads block by block. */
  readonly chains?: readonly ChainReader[];
  /**
   * All payments of an invoice that its chain has not removed.
   * @param reject called with a sentence about each payment that cannot count; the operator reads it
   */
  observe?(invoice: OpenInvoice, signal: AbortSignal, reject?: (problem: string) => void): Promise<ObservedPayment[]>;
  /** The recent payments, for all invoices together. The worker then observes those invoices. */
  received?(signal: AbortSignal): Promise<Received[]>;
  /** The top-up that a webhook of its processor names; undefined: its processor has not signed the webhook. */
  readWebhook?(webhook: ProcessorWebhook): WebhookSubject | undefined;
}

export interface GatewayKind<Settings> {
  /** JSON Schema (2020-12) of the settings; `driver`, which names the kind, is not among them. */
  schema: object;
  /** Makes no calls, because the service must start while a gateway is down. @throws Error that names the fault */
  open(settings: Settings): PaymentDriver;
}

/** The JSON Schema of an object in the operator's file, which refuses unknown members. */
export const closedObject = (required: readonly string[], properties: object) => ({
  type: 'object',
  required,
  additionalProperties: false,
  properties,
});
