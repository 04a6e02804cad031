/** What moves money by x402's scheme `exact` on an EVM chain: it verifies authorizations, has them settled, and looks. */

/** What is paid with, and to whom. */
export interface X402Terms {
  /** CAIP-2, such as eip155:84532. */
  network: string;
  /** The same network as version 1 of x402 names it. */
  networkV1: string;
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

/** By what the chain knows an authorization, and what it has to have done. */
export interface AuthorizationKey {
  payer: string;
  nonce: string;
  payTo: string;
  amountMicros: bigint;
  validBefore: Date;
}

/** Open: it may still be moved. Dead: it never will be. */
export type Settlement = { state: 'settled'; txId: string } | { state: 'open' } | { state: 'dead' };

export interface X402Driver {
  readonly name: string;
  /** Whether no coin moves. */
  readonly simulated: boolean;
  readonly terms: X402Terms;
  /** Whether the payer has signed it (EIP-712). */
  isSigned(authorization: Authorization, signature: `0x${string}`): Promise<boolean>;
  /**
   * Asks for the money to be moved. What it answers or throws is hearsay, but for `refused`: nothing was sent to the chain,
   * and why.
   */
  settle(
    authorization: Authorization,
    signature: `0x${string}`,
    signal: AbortSignal,
  ): Promise<{ refused?: string | undefined }>;
  /** What the chain says. */
  observe(key: AuthorizationKey): Promise<Settlement>;
}
