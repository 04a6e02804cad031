/** The interface of x402 drivers for the scheme `exact` on EVM chains. A driver verifies, settles and observes authorizations. */

/** The time for which clients sign, by the challenge. */
export const TIMEOUT_SECONDS = 300;

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

/** The type of its signature by EIP-712. */
export const AUTHORIZATION_TYPE = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const;

/** Whether two addresses or hashes are equal, without regard to upper and lower case. */
export const isSameHex = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase();

/** Identifies an authorization on the chain, with the transfer that it allows. */
export interface AuthorizationKey {
  payer: string;
  nonce: string;
  payTo: string;
  amountMicros: bigint;
  validBefore: Date;
  /** When the service received it. */
  createdAt: Date;
}

/** Open: the chain may still move the money, or lacks confirmations. Dead: the chain will never move it. */
export type Settlement =
  | { state: 'settled'; txId: string }
  /** `isUnseen`: the chain has used the authorization, but the node has no block that shows how. */
  | { state: 'open'; isUnseen?: true }
  | { state: 'dead' };

/** The result of a settlement. With neither `refused` nor `unsent`, the chain may have moved the money. */
export interface Settling {
  /** The reason why the payment is invalid. The settling party says that it sent nothing to the chain. */
  refused?: string;
  /** The signature has not left the driver. Without `refused` the caller can try again. */
  unsent?: true;
  /** The transaction that should move the money. */
  txId?: string | undefined;
  /** The gas that the deployment of the payer's wallet took at most. Absent: none, or a block shows the payment. */
  wastedGas?: bigint;
}

/** Runs one work at a time among all processes. */
export type Exclusive = <T>(work: () => Promise<T>) => Promise<T>;

export interface SettleOptions {
  signal: AbortSignal;
  exclusive: Exclusive;
  /**
   * An earlier settlement may be under way, with its last transaction as far as it is known. The driver sends nothing while that
   * one may still come into a block.
   */
  again?: { txId: string | undefined } | undefined;
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
  /** The gas that a payer or account may waste within a day. Absent: any. */
  readonly revertedGasMax?: number;
  /** Checks the settings that need more than themselves. @throws Error that names the fault */
  prepare?(): Promise<void>;
  /**
   * The reason of x402 why an authorization cannot be settled now; undefined: it can. It reserves nothing.
   * @throws if the driver cannot tell at the moment
   */
  verify(authorization: Authorization, signature: `0x${string}`, signal: AbortSignal): Promise<string | undefined>;
  /**
   * Whether the payer has signed an authorization, used or not.
   * @throws if the driver cannot tell at the moment
   */
  isSigned(authorization: Authorization, signature: `0x${string}`): Promise<boolean>;
  /** Settles an authorization. Its errors do not tell whether the chain moved the money. */
  settle(authorization: Authorization, signature: `0x${string}`, options: SettleOptions): Promise<Settling>;
  /**
   * Asks the chain for the outcome.
   * @param txId the transaction to check first
   * @throws if the chain does not answer at the moment
   */
  observe(key: AuthorizationKey, txId?: string): Promise<Settlement>;
  /**
   * Asks for the outcome of an authorization that the service does not send. It waits some seconds for the block of a
   * transaction of its payer. Absent: `observe` suffices.
   * @throws if the block is not deep enough then, or the chain does not answer
   */
  observeSubmitted?(key: AuthorizationKey): Promise<Settlement>;
  /** The gas that a transaction took if it reverted; undefined: it did not, or is in no block. Absent: none reverts. */
  revertedGas?(txId: string): Promise<bigint | undefined>;
  /** Whether the block of the transaction is final. @throws if the chain does not answer at the moment */
  isFinal(txId: string): Promise<boolean>;
  /** The units of the token that the payee has. Absent: the driver cannot tell. */
  payeeBalance?(): Promise<bigint>;
  /** The health. The worker asks twice a minute. Absent: it counts as healthy. */
  health?(signal: AbortSignal): Promise<X402Health>;
}
