/**
 * What verifies and settles authorizations: the facilitator of x402 within this process, or somebody else's by its URL.
 * A signature is the same in version 1 and version 2 of x402, so all are settled by version 2. Contract wallets sign,
 * too (ERC-1271), also before they are deployed (ERC-6492) if their factory is allowed: its call is paid by our gas.
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
  /** Of contract wallets that are deployed with their first payment. */
  walletFactories: string[];
  /** How long a request waits for the block. */
  settleSeconds: number;
  /** For how many settlements gas should be there. */
  gasReserve: number;
}

interface RemoteSettings {
  facilitatorUrl: string;
  facilitatorHeaders: Record<string, string>;
  settleSeconds: number;
}

const UNEXPLAINED = 'invalid_exact_evm_transaction_simulation_failed';
/** How long what was found out while a payment was verified is good for its settlement. */
const VERIFIED_MS = 20_000;

/** @throws Error if its key cannot be used */
export function localFacilitator(
  terms: X402Terms,
  chain: X402Chain,
  { gasKeyFile, walletFactories, settleSeconds, gasReserve }: LocalSettings,
): Facilitator {
  const wallet = new GasWallet(chain, readGasKey(gasKeyFile));
  if (isSameHex(wallet.address, terms.payTo))
    throw new Error('payTo is the gas wallet: what is paid belongs to a key that is kept offline.');
  const scheme = (signer: LocalSigner) =>
    new ExactEvmScheme(toFacilitatorEvmSigner(signer as never, { confirmationTimeoutMs: settleSeconds * 1000 }), {
      eip6492AllowedFactories: walletFactories,
      // Otherwise a wallet would be deployed by our gas before anybody has looked at its signature.
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
      // The scheme finds out why by a contract that not every chain has.
      const fault = invalidReason === UNEXPLAINED ? await chain.faultOf(authorization) : undefined;
      return fault ?? invalidReason ?? 'unexpected_verify_error';
    },
    async settle(authorization, signature, { exclusive, again }) {
      if (again && (await wallet.standing()).pending > 0) return { unsent: true };
      const signer = verified.get(signature) ?? new LocalSigner(chain, wallet);
      verified.delete(signature);
      signer.exclusive = exclusive;
      const answer: Partial<SettleResponse> = (await signer.sendVerified(settleSeconds * 1000))
        ? {}
        : await scheme(signer).settle(...messagesOf(terms, authorization, signature));
      const { txId } = signer.sent;
      if (txId !== undefined || answer.success) return { txId: txId ?? answer.transaction };
      return signer.isOurFault ? { unsent: true } : { refused: answer.errorReason ?? 'unexpected_settle_error' };
    },
    health: async () => healthOf(await wallet.standing(), gasReserve),
  };
}

/** More at once means that the first of them is stuck. */
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

/** What the scheme does its work with, for one payment: it remembers what was sent, and whether the chain was away. */
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

  /** Whether there is something to be sent that was simulated. */
  get isPrepared(): boolean {
    return this.#simulated !== undefined;
  }

  /** Whether nothing was sent although the payment may be good. */
  get isOurFault(): boolean {
    return this.#away !== undefined;
  }

  /** The scheme takes a chain that is away for a wrong signature. */
  throwIfAway(): void {
    if (this.#away !== undefined) throw this.#away;
  }

  readContract = (call: Call) => {
    if (call.functionName === 'transferWithAuthorization') this.#prepare(call);
    return this.#noteOutage(this.#chain.client.readContract(call));
  };
  verifyTypedData = (message: never) => this.#noteOutage(this.#chain.client.verifyTypedData(message));

  /** It does not change between two questions of one payment; it is asked for up to four times. */
  getCode = ({ address }: { address: Hex }) => {
    const asked = this.#codes.get(address) ?? this.#noteOutage(this.#chain.client.getCode({ address }));
    this.#codes.set(address, asked);
    return asked;
  };

  /** What is simulated is what will be sent. */
  #prepare({ address, ...call }: Call): void {
    this.#simulated = this.#wallet.prepare({ to: address, data: encodeFunctionData(call) });
    this.#simulated.catch(() => {});
  }

  /**
   * Sends what was simulated when it was verified, and waits for its block: it is not verified twice.
   * @returns false if there is nothing to be sent
   */
  async sendVerified(timeoutMs: number): Promise<boolean> {
    const request = await this.#simulated?.catch(() => undefined);
    if (!request) return false;
    const hash = await this.#send(request).catch(() => undefined);
    // Whether it is in a block is for the chain to say, later.
    if (hash) await this.#chain.mined(hash, timeoutMs).catch(() => {});
    return true;
  }

  writeContract = ({ address, abi, functionName, args }: Call) =>
    this.#send(this.#wallet.prepare({ to: address, data: encodeFunctionData({ abi, functionName, args }) }));

  /** The scheme deploys contract wallets by it. That moves no money: it counts as nothing that was sent. */
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

  /** A block that does not come is not the payment's fault. */
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

const UNHEARD = 'unheard';

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
          if (isUnheard(error)) return { errorReason: UNHEARD };
          if ('errorReason' in error) return error as Partial<SettleResponse>;
          throw error;
        });
      return hearsayOf(answer);
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

/** What a facilitator finds before it sends anything. Of other reasons nobody knows what was done. */
const REFUSALS =
  /^(insufficient_funds|asset_not_deployed_contract|eip6492_factory_not_allowed|invalid_exact_evm_(scheme|network_mismatch|missing_eip712_domain|recipient_mismatch|signature|payload_\w+|authorization_value|token_\w+_mismatch|eip3009_not_supported|insufficient_balance|transaction_simulation_failed|failed_to_parse_signature))$/;

function hearsayOf({ success, transaction, errorReason = '' }: Partial<SettleResponse>): Settling {
  if (errorReason === UNHEARD) return { unsent: true };
  if (!success && !transaction && REFUSALS.test(errorReason)) return { refused: errorReason };
  return { txId: transaction || undefined };
}

/** Nothing was sent to it: there was no connection. */
const isUnheard = (error: unknown): boolean =>
  error instanceof Error && /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN)$/.test(codeOf(error.cause) ?? codeOf(error) ?? '');
const codeOf = (error: unknown) => (error as { code?: string } | undefined)?.code;

/** The payment and what is asked for it, by version 2. */
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
