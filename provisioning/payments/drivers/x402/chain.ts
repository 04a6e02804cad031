/** An EVM chain as payments by x402 look at it: what it says of an authorization (EIP-3009), and nothing that others say. */
import {
  BaseError,
  type Block,
  createPublicClient,
  defineChain,
  fallback,
  type Hash,
  type Hex,
  HttpRequestError,
  http,
  type Log,
  type PublicClient,
  pad,
  parseAbi,
  parseEventLogs,
  TimeoutError,
  type TransactionReceipt,
  TransactionReceiptNotFoundError,
  toEventSelector,
  toHex,
} from 'viem';
import { type Authorization, type AuthorizationKey, isSameHex, type Settlement, type X402Terms } from './driver.ts';

const TOKEN = parseAbi([
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
  'function balanceOf(address account) view returns (uint256)',
  'function decimals() view returns (uint8)',
]);
const [USED, CANCELLED] = TOKEN;
const EVENTS = [toEventSelector(USED), toEventSelector(CANCELLED)];

const RPC_TIMEOUT_MS = 10_000;
/** How far clocks of chains and ours may be apart. */
const SKEW_SECONDS = 600n;
/** What was not used in time, or for something else, is dead only when the chain has gone on for so long. */
const DEAD_AFTER_SECONDS = 60n;
/** How often a receipt is asked for. */
const RECEIPT_POLL_MS = 250;
const RECEIPT_POLL_FIRST_MS = 5;
const MINED_MS = 1_000;
const MICROS_PER_USD = 1_000_000;

export interface ChainSettings {
  rpcUrls: readonly string[];
  /** How many blocks a payment needs, its own included. */
  confirmations: number;
  /** A payment above it has to be in a block that the chain calls safe. */
  safeAboveUsd: number;
  /** How many blocks one question for logs covers. */
  logBlocks: number;
}

type Head = Pick<Block, 'timestamp'> & { number: bigint };

/** @throws Error if it is none of EVM */
export const chainIdOf = (network: string): number => Number(/^eip155:(\d+)$/.exec(network)![1]);

export class X402Chain {
  readonly client: PublicClient;
  readonly #terms: X402Terms;
  readonly #settings: ChainSettings;
  /** What has been mined just now, to be looked at once. */
  readonly #mined = new Map<Hash, TransactionReceipt>();

  constructor(terms: X402Terms, settings: ChainSettings) {
    this.#terms = terms;
    this.#settings = settings;
    const { network } = terms;
    const chain = defineChain({
      id: chainIdOf(network),
      name: network,
      nativeCurrency: { name: 'gas', symbol: 'GAS', decimals: 18 },
      rpcUrls: { default: { http: [...settings.rpcUrls] } },
    });
    const urls = settings.rpcUrls.map((url) => http(url, { timeout: RPC_TIMEOUT_MS, retryCount: 1 }));
    this.client = createPublicClient({ chain, transport: fallback(urls, { retryCount: 0 }), cacheTime: 0 });
  }

  /** Whether it is the chain that was configured, and the unit of its token a micro-USD. */
  async isRight(signal: AbortSignal): Promise<boolean> {
    const { network, asset } = this.#terms;
    const id = await this.client.getChainId();
    signal.throwIfAborted();
    const decimals = await this.client.readContract({ address: asset, abi: TOKEN, functionName: 'decimals' });
    return id === chainIdOf(network) && decimals === 6;
  }

  /** @throws if the chain cannot be asked */
  async observe(key: AuthorizationKey, txId?: string): Promise<Settlement> {
    const found = txId === undefined ? undefined : await this.#receipt(txId as Hash);
    const fate = found && fateIn(found.logs, this.#terms.asset, key);
    if (fate === 'paid') return this.#settled(key, found!);
    const head = await this.client.getBlock({ blockTag: 'latest' });
    // Of that very block: another node may lag behind.
    if (await this.#isUsed(key, head.number)) return this.#search(key, head);
    const end = BigInt(Math.floor(key.validBefore.getTime() / 1000)) + DEAD_AFTER_SECONDS;
    return { state: head.timestamp >= end ? 'dead' : 'open' };
  }

  /** Whether the chain calls the block of a transaction safe. @throws if the chain cannot be asked */
  async isFinal(txId: string): Promise<boolean> {
    const receipt = await this.#receipt(txId as Hash);
    return receipt !== undefined && (await this.#isSafe(receipt.blockNumber));
  }

  async #isSafe(blockNumber: bigint): Promise<boolean> {
    return blockNumber <= (await this.client.getBlock({ blockTag: 'safe' })).number;
  }

  /** Why a transfer that is signed well would fail all the same; undefined: it is not known. */
  async faultOf({ from, nonce, value }: Authorization): Promise<string | undefined> {
    const balance = await this.client.readContract({
      address: this.#terms.asset,
      abi: TOKEN,
      functionName: 'balanceOf',
      args: [from],
    });
    if (balance < value) return 'invalid_exact_evm_insufficient_balance';
    return (await this.#isUsed({ payer: from, nonce })) ? 'invalid_exact_evm_nonce_already_used' : undefined;
  }

  #isUsed({ payer, nonce }: Pick<AuthorizationKey, 'payer' | 'nonce'>, blockNumber?: bigint): Promise<boolean> {
    return this.client.readContract({
      address: this.#terms.asset,
      abi: TOKEN,
      functionName: 'authorizationState',
      args: [payer as Hex, nonce as Hex],
      ...(blockNumber !== undefined && { blockNumber }),
    });
  }

  /** Waits for the block of a transaction. @throws if there is none in time */
  async mined(hash: Hash, timeoutMs: number): Promise<TransactionReceipt> {
    for (let end = Date.now() + timeoutMs, rest = RECEIPT_POLL_FIRST_MS; ; rest = Math.min(rest * 2, RECEIPT_POLL_MS)) {
      try {
        const receipt = await this.client.getTransactionReceipt({ hash });
        this.#mined.set(hash, receipt);
        setTimeout(() => this.#mined.delete(hash), MINED_MS).unref();
        return receipt;
      } catch (error) {
        if (!(error instanceof TransactionReceiptNotFoundError) || Date.now() > end) throw error;
      }
      await new Promise((resume) => setTimeout(resume, rest));
    }
  }

  /** A transaction that is in a block; undefined: it is in none. */
  async #receipt(hash: Hash): Promise<TransactionReceipt | undefined> {
    const mined = this.#mined.get(hash);
    // The chain has just shown it; when it is asked again, it may be another chain.
    if (mined && this.#mined.delete(hash)) return mined;
    try {
      return await this.client.getTransactionReceipt({ hash });
    } catch (error) {
      if (error instanceof TransactionReceiptNotFoundError) return undefined;
      throw error;
    }
  }

  /** Looks for the transaction that used it, from the head back to when it was sent to us, some blocks at a time. */
  async #search(key: AuthorizationKey, head: Head): Promise<Settlement> {
    const from = BigInt(Math.floor(key.createdAt.getTime() / 1000)) - SKEW_SECONDS;
    const step = BigInt(this.#settings.logBlocks);
    const topics = [EVENTS, pad(key.payer as Hex), key.nonce as Hex];
    for (let last = head.number; last >= 0n; last -= step) {
      const first = last >= step ? last - step + 1n : 0n;
      const [log] = await this.client.request({
        method: 'eth_getLogs',
        params: [{ address: this.#terms.asset, topics, fromBlock: toHex(first), toBlock: toHex(last) }],
      });
      if (log?.transactionHash) return this.#judge(key, log.transactionHash, head);
      if (first === 0n || (await this.client.getBlock({ blockNumber: first })).timestamp < from) break;
    }
    // It is used, and no block shows how: a node that lags behind, or one that has forgotten.
    return { state: 'open' };
  }

  async #judge(key: AuthorizationKey, txId: Hash, head: Head): Promise<Settlement> {
    const receipt = await this.#receipt(txId);
    const fate = receipt && fateIn(receipt.logs, this.#terms.asset, key);
    if (fate === 'paid') return this.#settled(key, receipt!);
    if (fate !== 'spent') return { state: 'open' };
    const { timestamp } = await this.client.getBlock({ blockNumber: receipt!.blockNumber });
    return { state: head.timestamp >= timestamp + DEAD_AFTER_SECONDS ? 'dead' : 'open' };
  }

  /** Settled, if it is deep enough in the chain. */
  async #settled(
    { amountMicros }: AuthorizationKey,
    { transactionHash, blockNumber }: { transactionHash: Hash; blockNumber: bigint },
  ): Promise<Settlement> {
    const { confirmations, safeAboveUsd } = this.#settings;
    const settled: Settlement = { state: 'settled', txId: transactionHash };
    if (amountMicros > BigInt(Math.round(safeAboveUsd * MICROS_PER_USD)))
      return (await this.#isSafe(blockNumber)) ? settled : { state: 'open' };
    if (confirmations === 1) return settled;
    const head = await this.client.getBlockNumber();
    return head - blockNumber + 1n >= BigInt(confirmations) ? settled : { state: 'open' };
  }
}

/**
 * What the logs of a transaction say of an authorization. The transfer is what the token logs next after the use: a
 * transaction may use several, and none may count for another.
 */
export function fateIn(
  logs: readonly Log[],
  asset: string,
  { payer, payTo, nonce, amountMicros }: Pick<AuthorizationKey, 'payer' | 'payTo' | 'nonce' | 'amountMicros'>,
): 'paid' | 'spent' | undefined {
  const own = logs.filter(({ address }) => isSameHex(address, asset));
  const told = parseEventLogs({ abi: TOKEN, logs: own });
  const isOurs = (log: (typeof told)[number]) =>
    log.eventName !== 'Transfer' && isSameHex(log.args.authorizer, payer) && isSameHex(log.args.nonce, nonce);
  const at = told.findIndex(isOurs);
  if (at < 0) return undefined;
  const next = told[at + 1];
  const isPaid =
    told[at]!.eventName === 'AuthorizationUsed' &&
    next?.eventName === 'Transfer' &&
    isSameHex(next.args.from, payer) &&
    isSameHex(next.args.to, payTo) &&
    next.args.value === amountMicros;
  return isPaid ? 'paid' : 'spent';
}

/** Whether nobody answered, as opposed to an answer that nobody likes. */
export const isAway = (error: unknown): boolean =>
  error instanceof BaseError &&
  error.walk((one) => one instanceof HttpRequestError || one instanceof TimeoutError) !== null;
