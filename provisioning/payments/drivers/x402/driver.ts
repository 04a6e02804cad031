/** What moves money by x402's scheme `exact` on an EVM chain: it verifies authorizations, has them settled, and looks. */

/** What is paid with, and to whom. */
export interface X402Terms {
  /** CAIP-2, such as eip155:84532. */
  network: string;
  /** The same network as version 1 of x402 names it; undefined: it has no name there, and is paid by version 2 alone. */
  networkV1: string | undefined;
  /** The contract of the token, and its EIP-712 domain. Its unit is a micro-USD. */
  asset: `0x${string}`;
  domain: { name: string; version: string };
  /** Who is paid. */
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

/** Whether two addresses or hashes are the same one: hexadecimal digits count in either case. */
export const isSameHex = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase();

/** By what the chain knows an authorization, and what it has to have done. */
export interface AuthorizationKey {
  payer: string;
  nonce: string;
  payTo: string;
  amountMicros: bigint;
  validBefore: Date;
  /** When it was sent to us: it was not used before. */
  createdAt: Date;
}

/** Open: it may still be moved, or is not deep enough in the chain. Dead: it never will be. */
export type Settlement = { state: 'settled'; txId: string } | { state: 'open' } | { state: 'dead' };

/** What came of asking for the money to be moved. With neither `refused` nor `unsent`, it may have been. */
export interface Settling {
  /** Nothing was sent to the chain, because the payment is not good, and why. */
  refused?: string;
  /** Nothing was sent to the chain, and that is not the payment's fault: it can be tried again. */
  unsent?: true;
  /** The transaction that should have moved it. */
  txId?: string | undefined;
}

/** Lets one process at a time work with what all of them share. */
export type Exclusive = <T>(work: () => Promise<T>) => Promise<T>;

export interface SettleOptions {
  signal: AbortSignal;
  exclusive: Exclusive;
  /** It was asked for before, and may be under way: nothing is sent while anything else is. */
  again?: boolean;
}

export interface X402Health {
  /** Whether it could settle now. */
  reachable: boolean;
  /** What the operator should see to before it can not. */
  warning?: string | undefined;
}

export interface X402Driver {
  readonly name: string;
  /** Whether no coin moves. */
  readonly simulated: boolean;
  readonly terms: X402Terms;
  /**
   * Why an authorization could not be settled now, as x402 names it; undefined: it could. Reserves nothing.
   * @throws if nobody can tell at the moment
   */
  verify(authorization: Authorization, signature: `0x${string}`, signal: AbortSignal): Promise<string | undefined>;
  /** Asks for the money to be moved. Whatever it throws says nothing of whether it was. */
  settle(authorization: Authorization, signature: `0x${string}`, options: SettleOptions): Promise<Settling>;
  /**
   * What the chain says.
   * @param txId where to look first
   * @throws if it cannot be asked at the moment
   */
  observe(key: AuthorizationKey, txId?: string): Promise<Settlement>;
  /** Whether that transaction is in a block that the chain will not take back. @throws if it cannot be asked at the moment */
  isFinal(txId: string): Promise<boolean>;
  /** How it stands, asked twice a minute; without it, it counts as well. */
  health?(signal: AbortSignal): Promise<X402Health>;
}
