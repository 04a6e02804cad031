/**
 * Facilitators verify and settle authorizations: one within this process, or a remote one by its URL. A signature is the same
 * in both versions of x402, so a facilitator settles all by version 2. Contract wallets may sign (ERC-1271). They may sign
 * before their deployment (ERC-6492) if the operator allows their factory. The gas wallet pays for that call.
 */
import { HTTPFacilitatorClient } from '@x402/core/http';
import type { PaymentPayload, PaymentRequirements, SettleResponse } from '@x402/core/types';
import { toFacilitatorEvmSigner } from '@x402/evm';
import { ExactEvmScheme } from '@x402/evm/exact/facilitator';
import { type Hex, isErc6492Signature, parseErc6492Signature } from 'viem';
import type { X402Chain } from './chain.ts';
import {
  type Authorization,
  isSameHex,
  type Settling,
  TIMEOUT_SECONDS,
  type X402Driver,
  type X402Health,
  type X402Terms,
} from './driver.ts';
import { LocalSigner } from './send.ts';
import { GasWallet, readGasKey } from './wallet.ts';

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
  // By the object that a request verified. Signatures of contract wallets may be equal, and would confuse requests.
  const verified = new WeakMap<Authorization, LocalSigner>();
  return {
    async verify(authorization, signature) {
      const signer = new LocalSigner(chain, wallet);
      const messages = messagesOf(terms, authorization, await neededOf(signer, authorization, signature));
      const { isValid, invalidReason } = await scheme(signer).verify(...messages);
      signer.throwIfAway();
      if (isValid && signer.isPrepared) {
        verified.set(authorization, signer);
        setTimeout(() => verified.delete(authorization), VERIFIED_MS).unref();
      }
      if (isValid) return undefined;
      // The scheme finds the reason by a contract that some chains lack.
      const fault = invalidReason === UNEXPLAINED ? await chain.faultOf(authorization) : undefined;
      return fault ?? invalidReason ?? 'unexpected_verify_error';
    },
    async settle(authorization, signature, { exclusive, again }) {
      if (again) {
        // Without an answer it may still be pending.
        if (again.txId !== undefined && (await wallet.isPending(again.txId as Hex).catch(() => true)))
          return { unsent: true };
        // A nonce after a lost one would wait for ever, and so would each later one.
        wallet.forgetNonce();
      }
      const signer = verified.get(authorization) ?? new LocalSigner(chain, wallet);
      verified.delete(authorization);
      signer.exclusive = exclusive;
      const answer: Partial<SettleResponse> = (await signer.sendVerified(
        { authorization, signature },
        settleSeconds * 1000,
      ))
        ? {}
        : await scheme(signer).settle(
            ...messagesOf(terms, authorization, await neededOf(signer, authorization, signature)),
          );
      const { txId } = signer.sent;
      const wasted = !answer.success && signer.deploymentGas && { wastedGas: signer.deploymentGas };
      if (txId !== undefined || answer.success) return { txId: txId ?? answer.transaction, ...wasted };
      if (signer.isRepeatable) return { unsent: true, ...wasted };
      return { unsent: true, refused: answer.errorReason ?? 'unexpected_settle_error', ...wasted };
    },
    health: async () => healthOf(await wallet.standing(), gasReserve),
  };
}

/**
 * The signature without the deployment of a wallet that exists. A factory that deploys twice burns the gas of the simulation,
 * and the transfer after it would have none.
 */
async function neededOf(signer: LocalSigner, { from }: Authorization, signature: Hex): Promise<Hex> {
  if (!isErc6492Signature(signature)) return signature;
  // The scheme meets an outage, too, and the signer tells of it.
  const code = await signer.getCode({ address: from }).catch(() => undefined);
  return code ? parseErc6492Signature(signature).signature : signature;
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
    maxTimeoutSeconds: TIMEOUT_SECONDS,
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
