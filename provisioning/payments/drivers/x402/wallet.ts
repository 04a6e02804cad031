/** A wallet that pays gas and holds nothing else. A thief of its key gets some cents of gas, and no payment. */
import { readFileSync, statSync } from 'node:fs';
import {
  BaseError,
  ExecutionRevertedError,
  type Hash,
  type Hex,
  InsufficientFundsError,
  keccak256,
  TransactionNotFoundError,
} from 'viem';
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import { RpcError } from '../json-rpc.ts';
import type { X402Chain } from './chain.ts';
import { type Exclusive, isSameHex } from './driver.ts';
import { faultsOf } from './nodes.ts';

/** The gas limit. Contract wallets decide how much gas the check of their signatures takes. */
const GAS_MAX = 500_000n;
/** The typical gas of one settlement, with some reserve for contract wallets. */
export const GAS_TYPICAL = 120_000n;
/** After this time the node knows a sent transaction, or has lost it. */
const REMEMBERED_MS = 30_000;
const ATTEMPTS_MAX = 4;
/** Fees hold for so long: they allow twice the base fee, which few blocks cannot double. */
const FEES_MS = 5_000;

interface Fees {
  maxFeePerGas: bigint;
  maxPriorityFeePerGas: bigint;
}

/** Reads the key of a private file: 32 bytes in hexadecimal. @throws Error that names the fault */
export function readGasKey(file: string): Hex {
  if (statSync(file).mode & 0o077)
    throw new Error(`The mode of ${file} lets other users read it. Run: chmod 600 ${file}`);
  const key = readFileSync(file, 'utf8').trim().replace(/^0x/, '');
  if (!/^[0-9a-f]{64}$/i.test(key)) throw new Error(`${file} has no private key: 64 hexadecimal digits.`);
  return `0x${key}`;
}

/** Whether the payment itself is at fault: its simulation reverts, or takes too much gas. */
export const isRejected = (error: unknown): boolean =>
  error instanceof BaseError &&
  (error.walk((one) => one instanceof ExecutionRevertedError) !== null || says(error, /out of gas/i));

/** A transaction that lacks only its nonce. */
export type Prepared = Awaited<ReturnType<GasWallet['prepare']>>;

/** The sent transaction. It is set even if the node did not confirm that it received it. */
export interface Sent {
  txId: Hash | undefined;
}

export class GasWallet {
  readonly #account: PrivateKeyAccount;
  readonly #chain: X402Chain;
  /** The last used nonce, which the node may not know yet. */
  #last: { nonce: number; at: number } | undefined;
  #fees: { asked: Promise<Fees>; at: number } | undefined;

  constructor(chain: X402Chain, key: Hex) {
    this.#chain = chain;
    this.#account = privateKeyToAccount(key);
  }

  get address(): Hex {
    return this.#account.address;
  }

  /**
   * A transaction without its nonce. The estimate simulates it with the sender and the price of the real one.
   * @throws the chain's error
   */
  async prepare(call: { to: Hex; data: Hex }) {
    const { client } = this.#chain;
    const fees = await this.fees();
    // With its limit the node ends a simulation that takes more, as an endless one would.
    const estimate = await client.estimateGas({ ...call, ...fees, account: this.address, gas: GAS_MAX });
    return { ...call, ...fees, type: 'eip1559', chainId: client.chain!.id, gas: (estimate * 6n) / 5n } as const;
  }

  /** The fees of a transaction now. */
  fees(): Promise<Fees> {
    if (this.#fees && Date.now() - this.#fees.at < FEES_MS) return this.#fees.asked;
    const asked = this.#askFees().catch((error) => {
      this.#fees = undefined;
      throw error;
    });
    this.#fees = { asked, at: Date.now() };
    return asked;
  }

  async #askFees(): Promise<Fees> {
    const { client } = this.#chain;
    const [{ baseFeePerGas }, maxPriorityFeePerGas] = await Promise.all([
      client.getBlock({ blockTag: 'latest' }),
      client.estimateMaxPriorityFeePerGas(),
    ]);
    return { maxFeePerGas: 2n * (baseFeePerGas ?? 0n) + maxPriorityFeePerGas, maxPriorityFeePerGas };
  }

  /**
   * Signs and sends a transaction. It takes the nonce under the lock, so that several processes can share one wallet.
   * @param sent receives the transaction just before it is sent
   * @throws the chain's error
   */
  async send(request: Prepared, exclusive: Exclusive, sent: Sent): Promise<Hash> {
    const { client } = this.#chain;
    return exclusive(async () => {
      for (let attempt = 1; ; attempt++) {
        const nonce = await this.#nextNonce();
        const serializedTransaction = await this.#account.signTransaction({ ...request, nonce });
        const txId = keccak256(serializedTransaction);
        try {
          sent.txId = txId;
          await client.sendRawTransaction({ serializedTransaction });
        } catch (error) {
          if (isKnown(error)) return this.#keep(nonce, txId);
          this.#last = undefined;
          if (!isRefused(error)) throw error;
          sent.txId = undefined;
          if (!isNonceTaken(error) || attempt >= ATTEMPTS_MAX) throw error;
          continue;
        }
        return this.#keep(nonce, txId);
      }
    });
  }

  /** Trusts the count of the node again. The chain may have lost the transaction with the last nonce. */
  forgetNonce(): void {
    this.#last = undefined;
  }

  #keep(nonce: number, txId: Hash): Hash {
    this.#last = { nonce, at: Date.now() };
    return txId;
  }

  /** Remembers the last nonce, because nodes behind one address may share transactions late. */
  async #nextNonce(): Promise<number> {
    const { address } = this;
    const pending = await this.#chain.client.getTransactionCount({ address, blockTag: 'pending' });
    const last = this.#last && Date.now() - this.#last.at < REMEMBERED_MS ? this.#last.nonce : -1;
    return Math.max(pending, last + 1);
  }

  /** Whether a sent transaction may still come into a block. Its node knows it, and mines its nonce or an earlier one next. */
  async isPending(hash: Hash): Promise<boolean> {
    const found = await this.#chain.client.getTransaction({ hash }).catch((error) => {
      if (error instanceof TransactionNotFoundError) return undefined;
      throw error;
    });
    if (!found || !isSameHex(found.from, this.address)) return false;
    const { latest, pending } = await this.#counts();
    return pending > latest && found.nonce >= latest;
  }

  /** The nonces after the mined transactions, and after the others. */
  async #counts(): Promise<{ latest: number; pending: number }> {
    const { address } = this;
    const { client } = this.#chain;
    const [latest, pending] = await Promise.all([
      client.getTransactionCount({ address, blockTag: 'latest' }),
      client.getTransactionCount({ address, blockTag: 'pending' }),
    ]);
    return { latest, pending };
  }

  /** The approximate settlements that its gas suffices for, and the number of its unmined transactions. */
  async standing(): Promise<{ settlements: bigint; pending: number }> {
    const [balance, { maxFeePerGas }, { latest, pending }] = await Promise.all([
      this.#chain.client.getBalance({ address: this.address }),
      this.fees(),
      this.#counts(),
    ]);
    return { settlements: balance / (GAS_TYPICAL * maxFeePerGas || 1n), pending: pending - latest };
  }
}

/** Whether the wallet lacks gas. */
export const isPoor = (error: unknown): boolean =>
  error instanceof BaseError && error.walk((one) => one instanceof InsufficientFundsError) !== null;

/** Whether one of the asked nodes says so. */
const says = (error: unknown, pattern: RegExp): boolean => faultsOf(error).some(({ message }) => pattern.test(message));
const isKnown = (error: unknown) => says(error, /already known|known transaction|already imported/i);
const NONCE_TAKEN = /nonce too low|replacement transaction underpriced/i;
const isNonceTaken = (error: unknown): boolean => says(error, NONCE_TAKEN);
const REFUSALS = [NONCE_TAKEN, /insufficient funds|intrinsic gas|fee cap|underpriced|exceeds block gas limit/i];
/** Whether each asked node has refused the transaction. A node that failed otherwise may have passed it on. */
function isRefused(error: unknown): boolean {
  const faults = faultsOf(error);
  const isRefusal = (fault: Error) =>
    fault instanceof RpcError && REFUSALS.some((pattern) => pattern.test(fault.message));
  return faults.length > 0 && faults.every(isRefusal);
}
