/** A chain in memory for payments by x402. It settles each valid authorization once, or misbehaves as its mood says. */
import { createHash } from 'node:crypto';
import { encodePaymentSignatureHeader } from '@x402/core/http';
import type { ApiError } from '../../../entities/errors.ts';
import type { Coin } from '../../../provisioning/payments/drivers/driver.ts';
import type {
  Authorization,
  AuthorizationKey,
  Settlement,
  Settling,
  X402Driver,
  X402Terms,
} from '../../../provisioning/payments/drivers/x402/driver.ts';

/**
 * The outcomes of a settlement. The chain settles it; it stays silent and does not; it refuses; or it is unreachable. It
 * settles and reports a refusal; or the service dies before or after the settlement.
 */
export const MOODS = ['settles', 'silent', 'refuses', 'away', 'lies', 'dies before', 'dies after'] as const;
export type Mood = (typeof MOODS)[number];

/** Pegged, so it needs no exchange rate. */
export const CHAIN_COIN: Coin = {
  code: 'USDC-TEST',
  name: 'A dollar',
  network: 'eip155:1337',
  decimals: 6,
  confirmationsRequired: 1,
  pegged: true,
  fixedRateMicros: 1_000_000n,
};
export class CoinChain implements X402Driver {
  readonly name = 'test';
  readonly simulated = false;
  readonly terms: X402Terms = {
    network: CHAIN_COIN.network,
    networkV1: undefined,
    asset: '0x036cbd53842c5426634e7929541ec2318f3dcf7e',
    domain: { name: 'USDC', version: '2' },
    payTo: '0x5117aced5117aced5117aced5117aced5117aced',
    coin: CHAIN_COIN.code,
  };
  mood: Mood = 'settles';
  /** Whether its node answers errors. */
  isAway = false;
  #signed = 0;
  /** The transactions and their values, by payer and nonce. */
  readonly #moved = new Map<string, { txId: string; value: bigint }>();
  readonly #taken = new Set<string>();
  /** Transactions that no reorganisation can revert. */
  readonly #safe = new Set<string>();
  readonly #lapsed = new Set<number>();
  #die = () => {};

  /** The payee's income in micro-USD that no reorganisation can revert. */
  get final(): bigint {
    const safe = [...this.#moved.values()].filter(({ txId }) => this.#safe.has(txId));
    return safe.reduce((sum, { value }) => sum + value, 0n);
  }

  /**
   * Signs the payment that an error demands.
   * @param seconds the time for which it is valid
   * @param isTaken whether a reader of the signature sends it to the chain before the payer pays with it
   * @returns the header
   */
  sign(error: ApiError, payer: string, seconds: number, isTaken: boolean): string {
    const asked = error.extras.headers?.['payment-required'];
    if (!asked) throw error;
    const accepted = JSON.parse(Buffer.from(asked, 'base64').toString()).accepts[0];
    const nonce = `0x${(this.#signed++).toString(16).padStart(64, '0')}`;
    const signed = { from: payer, to: accepted.payTo, value: accepted.amount, validAfter: '0', nonce };
    const authorization = { ...signed, validBefore: String(Math.floor(Date.now() / 1000) + seconds) };
    if (isTaken) {
      this.#move({ ...authorization, value: BigInt(signed.value) } as never);
      this.#taken.add(`${payer} ${nonce}`);
    }
    const payload = { authorization, signature: signatureOf(authorization as never) };
    return encodePaymentSignatureHeader({ x402Version: 2, accepted, payload } as never);
  }

  /** Lets all signed authorizations expire, unless they are settled. */
  lapse(): void {
    for (let nonce = 0; nonce < this.#signed; nonce++) this.#lapsed.add(nonce);
  }

  /** Makes all settled transactions safe. */
  secure(): void {
    for (const { txId } of this.#moved.values()) this.#safe.add(txId);
  }

  /** Reverts the last transactions that are not safe. */
  reorganise(depth: number): void {
    const unsafe = [...this.#moved].filter(([, { txId }]) => !this.#safe.has(txId));
    for (const [key] of unsafe.slice(-depth)) this.#moved.delete(key);
  }

  /** Resolves when a request dies, so that the walk goes on without its answer. */
  death(): Promise<void> {
    return new Promise((resolve) => {
      this.#die = resolve;
    });
  }

  async verify(authorization: Authorization, signature: string): Promise<string | undefined> {
    const { from: payer, nonce } = authorization;
    if (signature !== signatureOf(authorization)) return 'invalid_exact_evm_signature';
    const { state } = await this.observe({ payer, nonce });
    if (state === 'settled') return 'invalid_exact_evm_nonce_already_used';
    return state === 'dead' ? 'invalid_exact_evm_payload_authorization_valid_before' : undefined;
  }

  async isSigned(authorization: Authorization, signature: string): Promise<boolean> {
    return signature === signatureOf(authorization);
  }

  async settle(authorization: Authorization, signature: string): Promise<Settling> {
    const refused = await this.verify(authorization, signature);
    if (refused) return { refused };
    switch (this.mood) {
      case 'settles':
        return { txId: this.#move(authorization) };
      case 'silent':
        return {};
      case 'refuses':
        return { refused: 'insufficient_funds' };
      case 'away':
        return { unsent: true };
      case 'lies':
        this.#move(authorization);
        return { refused: 'insufficient_funds' };
      case 'dies after':
        this.#move(authorization);
    }
    this.#die();
    return new Promise(() => {});
  }

  async observe({ payer, nonce }: Pick<AuthorizationKey, 'payer' | 'nonce'>): Promise<Settlement> {
    if (this.isAway) throw new Error('The node is away.');
    const moved = this.#moved.get(`${payer} ${nonce}`);
    if (moved) return { state: 'settled', txId: moved.txId };
    return { state: this.#lapsed.has(Number(nonce)) ? 'dead' : 'open' };
  }

  async isFinal(txId: string): Promise<boolean> {
    if (this.isAway) throw new Error('The node is away.');
    return this.#safe.has(txId);
  }

  /** The payers and nonces of all settled authorizations. */
  get moved(): string[] {
    return [...this.#moved.keys()];
  }

  /** Whether the chain has settled the authorization of a payer and nonce. */
  has(key: string): boolean {
    return this.#moved.has(key);
  }

  /** Whether somebody else sent the authorization to the chain first. */
  isTaken(key: string): boolean {
    return this.#taken.has(key);
  }

  #move({ from, nonce, value }: Authorization): string {
    const txId = hash(`transaction ${from} ${nonce}`);
    this.#moved.set(`${from} ${nonce}`, { txId, value });
    return txId;
  }
}

const hash = (text: string): `0x${string}` => `0x${createHash('sha256').update(text).digest('hex')}`;
/** A hash as long as a signature, which differs for each authorization. */
const signatureOf = ({ from, to, value, validAfter, validBefore, nonce }: Authorization): `0x${string}` => {
  const digest = hash([from, to, value, validAfter, validBefore, nonce].join(' ').toLowerCase());
  return `${digest}${digest.slice(2)}1b`;
};
