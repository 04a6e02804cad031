/**
 * Facilitators verify and settle authorizations: one within this process, or a remote one by its URL. A signature is the same
 * in both versions of x402, so a facilitator settles all by version 2. Contract wallets may sign (ERC-1271). They may sign
 * before their deployment (ERC-6492) if the operator allows their factory. The gas wallet pays for that call.
 */
import { HTTPFacilitatorClient } from '@x402/core/http';
import type { PaymentPayload, PaymentRequirements, SettleResponse } from '@x402/core/types';
import { toFacilitatorEvmSigner } from '@x402/evm';
import { ExactEvmScheme } from '@x402/evm/exact/facilitator';
import { type Abi, encodeFunctionData, type Hash, type Hex } from 'viem';
import { isAway, type X402Chain } from './chain.ts';
import {
  type Authorization,
  type Exclusive,
  isSameHex,
  type Settling,
  type X402Driver,
  type X402Health,
  type X402Terms,
} from './driver.ts';
import { GasWallet, isRejected, type Prepared, readGasKey, type Sent } from './wallet.ts';

export interface Facilitator extends Pick<X402Driver, 'verify' | 'settle'> {
  health(signal: AbortSignal): Promise<X402Health>;
}

interface LocalSettings {
  gasKeyFile: string;
  /** Factories of contract wallets that are deployed with their first payment. */
  walletFactories: string[];
  /** The time that a request waits for the block. */
  settleSeconds: number;
  /** The settlements that the gas should suffice for. */
  gasReserve: number;
}

interface RemoteSettings {
  facilitatorUrl: string;
  facilitatorHeaders: Record<string, string>;
  settleSeconds: number;
}

const UNEXPLAINED = 'invalid_exact_evm_transaction_simulation_failed';
/** A settlement may use the results of a verification for so long. */
const VERIFIED_MS = 20_000;

/** A facilitator with a gas wallet of its own. @throws Error if the key is unusable */
export function localFacilitator(
  terms: X402Terms,
  chain: X402Chain,
  { gasKeyFile, walletFactories, settleSeconds, gasReserve }: LocalSettings,
): Facilitator {
  const wallet = new GasWallet(chain, readGasKey(gasKeyFile));
  if (isSameHex(wallet.address, terms.payTo))
    throw new Error('payTo is the gas wallet: the income belongs to a key that is kept offline.');
  const scheme = (signer: LocalSigner) =>
    new ExactEvmScheme(toFacilitatorEvmSigner(signer as never, { confirmationTimeoutMs: settleSeconds * 1000 }), {
      eip6492AllowedFactories: walletFactories,
      // Otherwise the gas wallet would pay for a deployment before the signature is verified.
      simulateInSettle: true,
    });
  const verified = new Map<string, LocalSigner>();
  return {
    async verify(authorization, signature) {
      const signer = new LocalSigner(chain, wallet);
      const messages = messagesOf(terms, authorization, signature);
      const { isValid, invalidReason } = await scheme(signer).verify(...messages);
      signer.throwIfAway();
      if (isValid && signer.isPrepared) {
        verified.set(signature, signer);
        setTimeout(() => verified.delete(signature), VERIFIED_MS).unref();
      }
      if (isValid) return undefined;
      // The scheme finds the reason by a contract that some chains lack.
      const fault = invalidReason === UNEXPLAINED ? await chain.faultOf(authorization) : undefined;
      return fault ?? invalidReason ?? 'unexpected_verify_error';
    },
    async settle(authorization, signature, { exclusive, again }) {
      if (again) {
        if ((await wallet.standing()).pending > 0) return { unsent: true };
        // A nonce after a lost one would wait for ever, and so would each later one.
        wallet.forgetNonce();
      }
      const signer = verified.get(signature) ?? new LocalSigner(chain, wallet);
      verified.delete(signature);
      signer.exclusive = exclusive;
      const answer: Partial<SettleResponse> = (await signer.sendVerified(settleSeconds * 1000))
        ? {}
        : await scheme(signer).settle(...messagesOf(terms, authorization, signature));
      const { txId } = signer.sent;
      if (txId !== undefined || answer.success) return { txId: txId ?? answer.transaction };
      return signer.isRepeatable ? { unsent: true } : { refused: answer.errorReason ?? 'unexpected_settle_error' };
    },
    health: async () => healthOf(await wallet.standing(), gasReserve),
  };
}

/** More pending transactions mean that the first one is stuck. */
const PENDING_MAX = 50;

const healthOf = (
  { settlements, pending }: Awaited<ReturnType<GasWallet['standing']>>,
  gasReserve: number,
): X402Health => ({
  reachable: settlements > 0n,
  ...(settlements < BigInt(gasReserve) && { warning: `The gas wallet has gas for about ${settlements} payments.` }),
  ...(pending > PENDING_MAX && { warning: `${pending} transactions of the gas wallet are in no block yet.` }),
});

interface Call {
  address: Hex;
  abi: Abi;
  functionName: string;
  args: readonly unknown[];
}

/** The signer of the scheme for one payment. It remembers the sent transaction, and whether the chain was away. */
class LocalSigner {
  readonly #chain: X402Chain;
  readonly #wallet: GasWallet;
  exclusive: Exclusive = (work) => work();
  readonly sent: Sent = { txId: undefined };
  #away: unknown;
  readonly #codes = new Map<Hex, Promise<Hex | undefined>>();
  #simulated: Promise<Prepared> | undefined;

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

  readContract = (call: Call) => {
    if (call.functionName === 'transferWithAuthorization') this.#prepare(call);
    return this.#noteOutage(this.#chain.client.readContract(call));
  };
  verifyTypedData = (message: never) => this.#noteOutage(this.#chain.client.verifyTypedData(message));

  /** Caches the code of a contract, because the scheme asks up to four times for one payment. */
  getCode = ({ address }: { address: Hex }) => {
    const asked = this.#codes.get(address) ?? this.#noteOutage(this.#chain.client.getCode({ address }));
    this.#codes.set(address, asked);
    return asked;
  };

  /** Prepares the simulated call, so that exactly this call is sent. */
  #prepare({ address, ...call }: Call): void {
    this.#simulated = this.#wallet.prepare({ to: address, data: encodeFunctionData(call) });
    this.#simulated.catch(() => {});
  }

  /**
   * Sends the call that the verification simulated, and waits for its block. So it need not verify again.
   * @returns false without such a call
   */
  async sendVerified(timeoutMs: number): Promise<boolean> {
    const request = await this.#simulated?.catch(() => undefined);
    if (!request) return false;
    const hash = await this.#send(request).catch(() => undefined);
    // The caller asks the chain later whether a block has it.
    if (hash) await this.#chain.mined(hash, timeoutMs).catch(() => {});
    return true;
  }

  writeContract = ({ address, abi, functionName, args }: Call) =>
    this.#send(this.#wallet.prepare({ to: address, data: encodeFunctionData({ abi, functionName, args }) }));

  /** The scheme deploys contract wallets by it. A deployment moves no money, so it does not count as sent. */
  sendTransaction = (call: { to: Hex; data: Hex }): Promise<Hash> =>
    this.#send(this.#wallet.prepare(call), { txId: undefined });

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
      if (isAway(error)) this.#away = error;
      throw error;
    }
  }
}

const UNREACHED = 'unreached';

export function remoteFacilitator(
  terms: X402Terms,
  { facilitatorUrl, facilitatorHeaders, settleSeconds }: RemoteSettings,
): Facilitator {
  const headers = { ...facilitatorHeaders };
  const client = new HTTPFacilitatorClient({
    url: facilitatorUrl,
    timeoutMs: settleSeconds * 1000,
    createAuthHeaders: async () => ({ verify: headers, settle: headers, supported: headers }),
  });
  return {
    async verify(authorization, signature) {
      const { isValid, invalidReason } = await client
        .verify(...messagesOf(terms, authorization, signature))
        .catch((error) =>
          'invalidReason' in error ? (error as { isValid?: false; invalidReason?: string }) : Promise.reject(error),
        );
      return isValid ? undefined : (invalidReason ?? 'unexpected_verify_error');
    },
    async settle(authorization, signature) {
      const answer = await client
        .settle(...messagesOf(terms, authorization, signature))
        .catch((error): Partial<SettleResponse> => {
          if (isUnreached(error)) return { errorReason: UNREACHED };
          if ('errorReason' in error) return error as Partial<SettleResponse>;
          throw error;
        });
      return settlingOf(answer);
    },
    async health() {
      const { kinds } = await client.getSupported();
      return {
        reachable: kinds.some(
          ({ x402Version, scheme, network }) => x402Version === 2 && scheme === 'exact' && network === terms.network,
        ),
      };
    },
  };
}

/** Reasons that a facilitator finds before it sends anything. With other reasons it may have sent the transaction. */
const REFUSALS =
  /^(insufficient_funds|asset_not_deployed_contract|eip6492_factory_not_allowed|invalid_exact_evm_(scheme|network_mismatch|missing_eip712_domain|recipient_mismatch|signature|payload_\w+|authorization_value|token_\w+_mismatch|eip3009_not_supported|insufficient_balance|transaction_simulation_failed|failed_to_parse_signature))$/;

function settlingOf({ success, transaction, errorReason = '' }: Partial<SettleResponse>): Settling {
  if (errorReason === UNREACHED) return { unsent: true };
  if (!success && !transaction && REFUSALS.test(errorReason)) return { refused: errorReason };
  return { txId: transaction || undefined };
}

/** Whether the facilitator received nothing, because there was no connection. */
const isUnreached = (error: unknown): boolean =>
  error instanceof Error && /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN)$/.test(codeOf(error.cause) ?? codeOf(error) ?? '');
const codeOf = (error: unknown) => (error as { code?: string } | undefined)?.code;

/** The payment and its requirements in version 2. */
function messagesOf(
  { network, asset, payTo, domain }: X402Terms,
  { from, to, value, validAfter, validBefore, nonce }: Authorization,
  signature: Hex,
): [PaymentPayload, PaymentRequirements] {
  const requirements = {
    scheme: 'exact',
    network: network as `${string}:${string}`,
    amount: String(value),
    asset,
    payTo: payTo.toLowerCase(),
    maxTimeoutSeconds: 300,
    extra: { ...domain },
  };
  const authorization = {
    from: from.toLowerCase(),
    to: to.toLowerCase(),
    value: String(value),
    validAfter: String(validAfter),
    validBefore: String(validBefore),
    nonce,
  };
  return [{ x402Version: 2, accepted: requirements, payload: { signature, authorization } }, requirements];
}
