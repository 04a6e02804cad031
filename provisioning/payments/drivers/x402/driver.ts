/** The interface of x402 drivers for the scheme `exact` on EVM chains. A driver verifies, settles and observes authorizations. */

/** The token and the payee. */
export interface X402Terms {
  /** CAIP-2, such as eip155:84532. */
  network: string;
  /** The name of the network in version 1 of x402; undefined: only version 2 can pay. */
  networkV1: string | undefined;
  /** The contract of the token, and its EIP-712 domain. Its unit is a micro-USD. */
  asset: `0x${string}`;
  domain: { name: string; version: string };
  /** The address of the payee. */
  payTo: `0x${string}`;
  /** The code of the coin. */
  coin: string;
}

/** transferWithAuthorization (EIP-3009); times are seconds since the epoch. */
export interface Authorization {
  from: `0x${string}`;
  to: `0x${string}`;
  value: bigint;
  validAfter: bigint;
  validBefore: bigint;
  nonce: `0x${string}`;
}

/** Whether two addresses or hashes are equal, without regard to upper and lower case. */
export const isSameHex = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase();

/** Identifies an authorization on the chain, with the transfer that it allows. */
export interface AuthorizationKey {
  payer: string;
  nonce: string;
  payTo: string;
  amountMicros: bigint;
  validBefore: Date;
  /** When the service received it. Its use is not earlier. */
  createdAt: Date;
}

/** Open: the chain may still move the money, or lacks confirmations. Dead: the chain will never move it. */
export type Settlement = { state: 'settled'; txId: string } | { state: 'open' } | { state: 'dead' };

/** The result of a settlement. With neither `refused` nor `unsent`, the chain may have moved the money. */
export interface Settling {
  /** The reason why the payment is invalid. The driver sent nothing to the chain. */
  refused?: string;
  /** The driver sent nothing to the chain, for no fault of the payment. The caller can try again. */
  unsent?: true;
  /** The transaction that should move the money. */
  txId?: string | undefined;
}

/** Runs one work at a time among all processes. */
export type Exclusive = <T>(work: () => Promise<T>) => Promise<T>;

export interface SettleOptions {
  signal: AbortSignal;
  exclusive: Exclusive;
  /** An earlier settlement may be under way. The driver sends nothing while other transactions are open. */
  again?: boolean;
}

export interface X402Health {
  /** Whether it can settle now. */
  reachable: boolean;
  /** A problem that the operator should solve before settlements fail. */
  warning?: string | undefined;
}

export interface X402Driver {
  readonly name: string;
  /** Whether no coin moves. */
  readonly simulated: boolean;
  readonly terms: X402Terms;
  /**
   * The reason of x402 why an authorization cannot be settled now; undefined: it can. It reserves nothing.
   * @throws if the driver cannot tell at the moment
   */
  verify(authorization: Authorization, signature: `0x${string}`, signal: AbortSignal): Promise<string | undefined>;
  /** Settles an authorization. Its errors do not tell whether the chain moved the money. */
  settle(authorization: Authorization, signature: `0x${string}`, options: SettleOptions): Promise<Settling>;
  /**
   * Asks the chain for the outcome.
   * @param txId the transaction to check first
   * @throws if the chain does not answer at the moment
   */
  observe(key: AuthorizationKey, txId?: string): Promise<Settlement>;
  /** Whether the block of the transaction is final. @throws if the chain does not answer at the moment */
  isFinal(txId: string): Promise<boolean>;
  /** The health. The worker asks twice a minute. Absent: it counts as healthy. */
  health?(signal: AbortSignal): Promise<X402Health>;
}
