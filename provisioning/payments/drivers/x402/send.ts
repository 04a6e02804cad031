/** Sends the transactions of one payment by the gas wallet, for the scheme of x402. */
import { type Abi, encodeFunctionData, type Hash, type Hex, parseErc6492Signature, parseSignature } from 'viem';
import type { X402Chain } from './chain.ts';
import type { Authorization, Exclusive } from './driver.ts';
import { isAway } from './nodes.ts';
import { type GasWallet, isPoor, isRejected, type Prepared, type Sent } from './wallet.ts';

interface Call {
  address: Hex;
  abi: Abi;
  functionName: string;
  args: readonly unknown[];
}

/** An authorization and its signature. */
interface Signed {
  authorization: Authorization;
  signature: Hex;
}

/** The signer of the scheme for one payment. It remembers the sent transaction, and whether the chain was away. */
export class LocalSigner {
  readonly #chain: X402Chain;
  readonly #wallet: GasWallet;
  exclusive: Exclusive = (work) => work();
  readonly sent: Sent = { txId: undefined };
  /** The gas limit of a sent deployment. */
  deploymentGas: bigint | undefined;
  #away: unknown;
  readonly #codes = new Map<Hex, Promise<Hex | undefined>>();
  #simulated: { request: Prepared; args: Call['args'] } | undefined;

  constructor(chain: X402Chain, wallet: GasWallet) {
    this.#chain = chain;
    this.#wallet = wallet;
  }

  get address(): Hex {
    return this.#wallet.address;
  }

  /** Whether it has simulated a transaction that it can send. */
  get isPrepared(): boolean {
    return this.#simulated !== undefined;
  }

  /** Whether it sent nothing although the payment may be valid. */
  get isRepeatable(): boolean {
    return this.#away !== undefined;
  }

  /** The scheme mistakes an outage of the chain for a wrong signature. */
  throwIfAway(): void {
    if (this.#away !== undefined) throw this.#away;
  }

  /** Simulates with the sender and the price of the real transaction, because a contract wallet sees both. */
  readContract = async (call: Call) => {
    if (call.functionName === 'transferWithAuthorization') return this.#noteOutage(this.#prepare(call));
    const sender = { account: this.address, ...(await this.#noteOutage(this.#wallet.fees())) };
    return this.#noteOutage(this.#chain.client.readContract({ ...call, ...sender }));
  };
  verifyTypedData = (message: never) => this.#noteOutage(this.#chain.client.verifyTypedData(message));

  /** Caches the code of a contract, because the scheme asks up to four times for one payment. */
  getCode = ({ address }: { address: Hex }) => {
    const asked = this.#codes.get(address) ?? this.#noteOutage(this.#chain.client.getCode({ address }));
    this.#codes.set(address, asked);
    return asked;
  };

  /** Prepares the simulated call, so that exactly this call is sent. */
  async #prepare({ address, ...call }: Call): Promise<void> {
    const request = await this.#wallet.prepare({ to: address, data: encodeFunctionData(call) });
    this.#simulated = { request, args: call.args };
  }

  /** The simulated call, if it has exactly these arguments. */
  #simulatedWith(args: Call['args']): Prepared | undefined {
    return this.#simulated && textOf(this.#simulated.args) === textOf(args) ? this.#simulated.request : undefined;
  }

  /**
   * Sends the call that the verification simulated, and waits for its block. So it need not verify again.
   * @returns false without such a call of this payment
   */
  async sendVerified(payment: Signed, timeoutMs: number): Promise<boolean> {
    const simulated = this.isPrepared && this.#simulatedWith(argumentsOf(payment));
    if (!simulated) return false;
    const hash = await this.#send(simulated).catch(() => undefined);
    // The caller asks the chain later whether a block has it.
    if (hash) await this.#chain.mined(hash, timeoutMs).catch(() => {});
    return true;
  }

  writeContract = ({ address, abi, functionName, args }: Call) =>
    this.#send(
      this.#simulatedWith(args) ??
        this.#wallet.prepare({ to: address, data: encodeFunctionData({ abi, functionName, args }) }),
    );

  /** The scheme deploys contract wallets by it. A deployment moves no money, so it is not the sent transaction. */
  sendTransaction = async (call: { to: Hex; data: Hex }): Promise<Hash> => {
    const prepared = this.#wallet.prepare(call);
    const deployment: Sent = { txId: undefined };
    try {
      return await this.#send(prepared, deployment);
    } finally {
      if (deployment.txId) this.deploymentGas = (await prepared).gas;
    }
  };

  async #send(prepared: Prepared | Promise<Prepared>, sent: Sent = this.sent): Promise<Hash> {
    try {
      return await this.#wallet.send(await prepared, this.exclusive, sent);
    } catch (error) {
      if (!isRejected(error)) this.#away = error;
      throw error;
    }
  }

  /** Waits for a block. The payment is not at fault if none comes. */
  waitForTransactionReceipt = async ({ hash, timeout = 0 }: { hash: Hash; timeout?: number }) => {
    try {
      return await this.#chain.mined(hash, timeout);
    } catch (error) {
      this.#away = error;
      throw error;
    }
  };

  async #noteOutage<T>(asked: Promise<T>): Promise<T> {
    try {
      return await asked;
    } catch (error) {
      if (isAway(error) || isPoor(error)) this.#away = error;
      throw error;
    }
  }
}

/** The arguments of `transferWithAuthorization`. A signature of 65 bytes has three parts. */
function argumentsOf({ authorization, signature }: Signed): Call['args'] {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const own = parseErc6492Signature(signature).signature;
  const { v, yParity, r, s } = own.length === 132 ? parseSignature(own) : {};
  return [from, to, value, validAfter, validBefore, nonce, ...(r ? [v ?? yParity, r, s] : [own])];
}

const textOf = (args: Call['args']): string => args.map(String).join(' ').toLowerCase();
