/** A chain in memory on which payments by x402 are made: it moves what is signed once, as long as it is good, or does otherwise. */
import { createHash } from 'node:crypto';
import { encodePaymentSignatureHeader } from '@x402/core/http';
import type { ApiError } from '../../entities/errors.ts';
import type { Coin } from '../../provisioning/payments/drivers/driver.ts';
import type {
  Authorization,
  AuthorizationKey,
  Settlement,
  Settling,
  X402Driver,
  X402Terms,
} from '../../provisioning/payments/drivers/x402/driver.ts';

/**
 * What comes of asking for money to be moved: it is; nobody says anything, and it is not; it is refused; it cannot be sent;
 * it is moved and called refused; and whoever asks dies, before it is moved or after.
 */
export const MOODS = ['settles', 'silent', 'refuses', 'away', 'lies', 'dies before', 'dies after'] as const;
export type Mood = (typeof MOODS)[number];

/** What it is worth need not be asked for. */
export const CHAIN_COIN: Coin = {
  ...{ code: 'USDC-TEST', name: 'A dollar', network: 'eip155:1337', decimals: 6, confirmationsRequired: 1 },
  ...{ pegged: true, fixedRateMicros: 1_000_000n },
};
/** The end of the century. */
const VALID_BEFORE = 4_102_444_800n;

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
  /** What has come to the payee, in micro-USD. */
  received = 0n;
  #signed = 0;
  /** By payer and nonce: the transactions that moved them, and how much. */
  readonly #moved = new Map<string, { txId: string; value: bigint }>();
  /** Transactions that no reorganisation takes back. */
  readonly #safe = new Set<string>();
  readonly #lapsed = new Set<number>();
  #die = () => {};

  /** A payment for what an error asks for. @returns the header */
  sign(error: ApiError, payer: string): string {
    const asked = error.extras.headers?.['payment-required'];
    if (!asked) throw error;
    const accepted = JSON.parse(Buffer.from(asked, 'base64').toString()).accepts[0];
    const nonce = `0x${(this.#signed++).toString(16).padStart(64, '0')}`;
    const signed = { from: payer, to: accepted.payTo, value: accepted.amount, validAfter: '0', nonce };
    const authorization = { ...signed, validBefore: String(VALID_BEFORE) };
    const payload = { authorization, signature: signatureOf(authorization as never) };
    return encodePaymentSignatureHeader({ x402Version: 2, accepted, payload } as never);
  }

  /** What has been signed and not moved by now is moved by nobody any more. */
  lapse(): void {
    for (let nonce = 0; nonce < this.#signed; nonce++) this.#lapsed.add(nonce);
  }

  /** What has been moved by now stays so. */
  secure(): void {
    for (const { txId } of this.#moved.values()) this.#safe.add(txId);
  }

  /** A reorganisation: of what is not safe, the last ones have not been moved. */
  reorganise(depth: number): void {
    const unsafe = [...this.#moved].filter(([, { txId }]) => !this.#safe.has(txId));
    for (const [key, { value }] of unsafe.slice(-depth)) {
      this.#moved.delete(key);
      this.received -= value;
    }
  }

  /** Whoever waits for it goes on without a request that has died. */
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
    const moved = this.#moved.get(`${payer} ${nonce}`);
    if (moved) return { state: 'settled', txId: moved.txId };
    return { state: this.#lapsed.has(Number(nonce)) ? 'dead' : 'open' };
  }

  async isFinal(txId: string): Promise<boolean> {
    return this.#safe.has(txId);
  }

  #move({ from, nonce, value }: Authorization): string {
    const txId = hash(`transaction ${from} ${nonce}`);
    this.#moved.set(`${from} ${nonce}`, { txId, value });
    this.received += value;
    return txId;
  }
}

const hash = (text: string): `0x${string}` => `0x${createHash('sha256').update(text).digest('hex')}`;
/** As long as a signature, and another if anything else is signed. */
const signatureOf = ({ from, to, value, validAfter, validBefore, nonce }: Authorization): `0x${string}` => {
  const digest = hash([from, to, value, validAfter, validBefore, nonce].join(' ').toLowerCase());
  return `${digest}${digest.slice(2)}1b`;
};
