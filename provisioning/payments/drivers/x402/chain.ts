/** Asks an EVM chain for the outcome of authorizations (EIP-3009) of payments by x402. */
import {
  type Block,
  createPublicClient,
  custom,
  defineChain,
  type Hash,
  type Hex,
  type Log,
  type PublicClient,
  pad,
  parseAbi,
  parseEventLogs,
  type TransactionReceipt,
  TransactionReceiptNotFoundError,
  toEventSelector,
  toHex,
} from 'viem';
import {
  AUTHORIZATION_TYPE,
  type Authorization,
  type AuthorizationKey,
  isSameHex,
  type Settlement,
  type X402Terms,
} from './driver.ts';
import { isStopped, providerOf } from './nodes.ts';

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

/**
 * How far the search for a use goes back before the arrival of the authorization. The service accepts authorizations that
 * end within ten minutes. So their clients seldom signed them earlier than this.
 */
const SEARCH_SECONDS = 3_600n;
/** The longest pause between two calls for a receipt. */
const RECEIPT_POLL_MS = 250;
const RECEIPT_POLL_FIRST_MS = 5;
const MINED_MS = 1_000;
/** How long a request waits for the block of a payment that its payer has submitted. */
const SUBMITTED_MS = 6_000;
const MICROS_PER_USD = 1_000_000;

export interface ChainSettings {
  rpcUrls: readonly string[];
  /** The required confirmations of a payment. */
  confirmations: number;
  /** A larger payment must be in a block that the chain calls safe. */
  safeAboveUsd: number;
  /** The blocks of one call for logs. */
  logBlocks: number;
  /** The age of the newest block of a node that has stopped. */
  staleSeconds: number;
}

type Head = Pick<Block, 'timestamp'> & { number: bigint };

/** The chain id of a CAIP-2 network. @throws Error if it is not an EVM network */
export const chainIdOf = (network: string): number => Number(/^eip155:(\d+)$/.exec(network)![1]);

export class X402Chain {
  readonly client: PublicClient;
  readonly #terms: X402Terms;
  readonly #settings: ChainSettings;
  /** Receipts of just mined transactions, each for one use. */
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
    const transport = custom(providerOf(settings.rpcUrls, settings.staleSeconds), { retryCount: 1 });
    this.client = createPublicClient({ chain, transport, cacheTime: 0 });
  }

  /** Whether it is the configured chain, and the unit of its token is a micro-USD. */
  async isRight(signal: AbortSignal): Promise<boolean> {
    const { network, asset } = this.#terms;
    const id = await this.client.getChainId();
    signal.throwIfAborted();
    const decimals = await this.client.readContract({ address: asset, abi: TOKEN, functionName: 'decimals' });
    return id === chainIdOf(network) && decimals === 6;
  }

  /** The time of the newest block, if all nodes have stopped. */
  async stoppedAt(): Promise<Date | undefined> {
    const { timestamp } = await this.client.getBlock({ blockTag: 'latest' });
    return isStopped(timestamp, this.#settings.staleSeconds) ? new Date(Number(timestamp) * 1000) : undefined;
  }

  /** The outcome of an authorization. @throws if the node does not answer */
  async observe(key: AuthorizationKey, txId?: string): Promise<Settlement> {
    const found = txId === undefined ? undefined : await this.#receipt(txId as Hash);
    const fate = found && fateIn(found.logs, this.#terms.asset, key);
    if (fate === 'paid') return this.#settled(key, found!);
    const head = await this.client.getBlock({ blockTag: 'latest' });
    // At exactly that block, because another node may lag behind.
    if (await this.#isUsed(key, head.number)) return this.#search(key, head);
    return { state: (await this.#isExpired(key, head)) ? 'dead' : 'open' };
  }

  /**
   * The outcome of an authorization that the service does not send. It waits while a transaction uses the authorization that has
   * too few blocks. @throws if it still has too few at the end, or the node does not answer
   */
  async observeSubmitted(key: AuthorizationKey): Promise<Settlement> {
    for (const end = Date.now() + SUBMITTED_MS; ; ) {
      const found = await this.observe(key);
      // Some nodes know no pending block. Waiting shows no block that the node has pruned.
      if (found.state !== 'open' || found.isUnseen || !(await this.#isUsed(key, 'pending').catch(() => false)))
        return found;
      if (Date.now() > end)
        throw new Error('The payer has submitted the payment, and its block is not deep enough yet.');
      await new Promise((resume) => setTimeout(resume, RECEIPT_POLL_MS));
    }
  }

  /** Whether the safe block is later than the authorization. Then no reorganisation can still use it. */
  async #isExpired({ validBefore }: AuthorizationKey, head: Head): Promise<boolean> {
    const end = BigInt(Math.floor(validBefore.getTime() / 1000));
    if (head.timestamp < end) return false;
    const safe = await this.client.getBlock({ blockTag: 'safe' });
    return safe.timestamp >= end && safe.number <= head.number;
  }

  /** The gas that a transaction took if it reverted. @throws if the node does not answer */
  async revertedGas(txId: string): Promise<bigint | undefined> {
    const receipt = await this.#receipt(txId as Hash);
    return receipt?.status === 'reverted' ? receipt.gasUsed : undefined;
  }

  /** Whether the chain calls the block of a transaction final. @throws if the node does not answer */
  async isFinal(txId: string): Promise<boolean> {
    const receipt = await this.#receipt(txId as Hash);
    if (!receipt || receipt.blockNumber > (await this.client.getBlock({ blockTag: 'finalized' })).number) return false;
    // Another node may have answered the receipt.
    return (await this.client.getBlock({ blockNumber: receipt.blockNumber })).hash === receipt.blockHash;
  }

  async #isSafe(blockNumber: bigint): Promise<boolean> {
    return blockNumber <= (await this.client.getBlock({ blockTag: 'safe' })).number;
  }

  #balanceOf(address: Hex): Promise<bigint> {
    return this.client.readContract({
      address: this.#terms.asset,
      abi: TOKEN,
      functionName: 'balanceOf',
      args: [address],
    });
  }

  /** The units that the payee has. */
  payeeBalance(): Promise<bigint> {
    return this.#balanceOf(this.#terms.payTo);
  }

  /** Whether the payer, or its contract wallet, accepts the signature. @throws if the node does not answer */
  isSigned({ from, to, ...others }: Authorization, signature: Hex): Promise<boolean> {
    const { network, asset: verifyingContract, domain } = this.#terms;
    // The client refuses addresses whose mixed case is no checksum.
    const message = { from: from.toLowerCase() as Hex, to: to.toLowerCase() as Hex, ...others };
    return this.client.verifyTypedData({
      address: message.from,
      domain: { ...domain, chainId: chainIdOf(network), verifyingContract },
      types: AUTHORIZATION_TYPE,
      primaryType: 'TransferWithAuthorization',
      message,
      signature,
    });
  }

  /** The reason why a correctly signed transfer would fail; undefined: unknown. */
  async faultOf({ from, nonce, value }: Authorization): Promise<string | undefined> {
    if ((await this.#balanceOf(from)) < value) return 'invalid_exact_evm_insufficient_balance';
    return (await this.#isUsed({ payer: from, nonce })) ? 'invalid_exact_evm_nonce_already_used' : undefined;
  }

  #isUsed(
    { payer, nonce }: Pick<AuthorizationKey, 'payer' | 'nonce'>,
    at: bigint | 'latest' | 'pending' = 'latest',
  ): Promise<boolean> {
    return this.client.readContract({
      address: this.#terms.asset,
      abi: TOKEN,
      functionName: 'authorizationState',
      args: [payer as Hex, nonce as Hex],
      ...(typeof at === 'bigint' ? { blockNumber: at } : { blockTag: at }),
    });
  }

  /** Waits for the block of a transaction. @throws if no block has it in time */
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

  /** The receipt of a mined transaction; undefined: no block has it. */
  async #receipt(hash: Hash): Promise<TransactionReceipt | undefined> {
    const mined = this.#mined.get(hash);
    // Uses the cached receipt once. A later call may find another chain after a reorganisation.
    if (mined && this.#mined.delete(hash)) return mined;
    try {
      return await this.client.getTransactionReceipt({ hash });
    } catch (error) {
      if (error instanceof TransactionReceiptNotFoundError) return undefined;
      throw error;
    }
  }

  /** Searches for the transaction that used it, from the head back to some time before its arrival. */
  async #search(key: AuthorizationKey, head: Head): Promise<Settlement> {
    const from = BigInt(Math.floor(key.createdAt.getTime() / 1000)) - SEARCH_SECONDS;
    const step = BigInt(this.#settings.logBlocks);
    const topics = [EVENTS, pad(key.payer as Hex), key.nonce as Hex];
    for (let last = head.number; last >= 0n; last -= step) {
      const first = last >= step ? last - step + 1n : 0n;
      const [log] = await this.client.request({
        method: 'eth_getLogs',
        params: [{ address: this.#terms.asset, topics, fromBlock: toHex(first), toBlock: toHex(last) }],
      });
      if (log?.transactionHash) return this.#judge(key, log.transactionHash);
      if (first === 0n || (await this.client.getBlock({ blockNumber: first })).timestamp < from) break;
    }
    // It is used, but no block shows how: the node lags behind, or has pruned its logs.
    return { state: 'open', isUnseen: true };
  }

  /** Dead, if a safe block has used it otherwise. Then no reorganisation can bring the payment. */
  async #judge(key: AuthorizationKey, txId: Hash): Promise<Settlement> {
    const receipt = await this.#receipt(txId);
    const fate = receipt && fateIn(receipt.logs, this.#terms.asset, key);
    if (fate === 'paid') return this.#settled(key, receipt!);
    if (fate !== 'spent') return { state: 'open' };
    return { state: (await this.#isSafe(receipt!.blockNumber)) ? 'dead' : 'open' };
  }

  /** Settled, if the block has enough confirmations. */
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
 * The fate of an authorization by the logs of a transaction. The token logs the transfer directly after the use. A transaction
 * may use several authorizations, and none may count for another.
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
