/**
 * Reads an EVM chain over JSON-RPC. It finds transfers of tokens by their logs (ERC-20), and the native coin by transactions
 * directly to an address. The reader cannot see native coins that a contract passes on, because they leave no trace in a
 * block.
 */
import type { Block, ChainReader, ObservedPayment } from '../driver.ts';
import { type Call, JsonRpc } from '../json-rpc.ts';
import { blockOf, type EvmBlock, type Log, type Receipt, TRANSFER, type Transfer, topicOf, transferOf } from './rpc.ts';

/** Addresses of one filter. Nodes refuse longer filters. */
const TOPICS_MAX = 500;
/** Full blocks of one range. One full block may have several hundred kilobytes. */
const FULL_BLOCKS_MAX = 50;
/** The position of the native coin, which leaves no log in a receipt. */
const NATIVE_POSITION = -1;

export interface EvmChain {
  network: string;
  chainId: number;
  urls: readonly string[];
  batchMax: number;
  rangeMax: number;
  pollSeconds: number;
  /** The code of the native coin, if the operator accepts it. */
  native: string | undefined;
  /** The codes of the tokens by their contracts in lower case. */
  tokens: ReadonlyMap<string, string>;
}

/** The original spelling of addresses by their lower case. */
type DepositAddresses = ReadonlyMap<string, string>;

export class EvmReader implements ChainReader {
  readonly network: string;
  readonly pollSeconds: number;
  readonly #chain: EvmChain;
  readonly #rpc: JsonRpc;
  /** The present size of ranges. Each failed range halves it. */
  #range: number;
  /** A cache, because the addresses are the same for many blocks. */
  readonly #deposits = new WeakMap<ReadonlySet<string>, DepositAddresses>();

  constructor(chain: EvmChain) {
    const { network, chainId, urls, batchMax } = chain;
    this.#chain = chain;
    this.network = network;
    this.pollSeconds = chain.pollSeconds;
    this.#range = this.#rangeMax;
    const verify = async (call: <T>(...call: Call) => Promise<T>) => {
      const found = Number(await call<string>('eth_chainId'));
      if (found !== chainId)
        throw new Error(`The node belongs to the chain ${found}, and not to ${chainId} (${network}).`);
      // Some public nodes refuse this call. They are always synced.
      const reading = await call<unknown>('eth_syncing').catch(() => false);
      if (reading) throw new Error('The node still syncs its chain.');
    };
    this.#rpc = new JsonRpc({ urls, batchMax, verify });
  }

  get rangeMax(): number {
    return this.#range;
  }

  get #rangeMax(): number {
    const { native, rangeMax } = this.#chain;
    return native ? Math.min(FULL_BLOCKS_MAX, rangeMax) : rangeMax;
  }

  async head(signal: AbortSignal) {
    return blockOf(await this.#rpc.call<EvmBlock | null>(signal, 'eth_getBlockByNumber', 'latest', false));
  }

  async hash(height: number, signal: AbortSignal) {
    return (await this.#rpc.call<EvmBlock | null>(signal, ...blockCall(height, false)))?.hash;
  }

  async block(height: number, addresses: ReadonlySet<string>, signal: AbortSignal): Promise<Block> {
    const deposits = this.#lowerCase(addresses);
    const [block] = await this.#blocks([height], this.#isFull(deposits), signal);
    // Asks by the hash, because a node without exactly this block then answers with an error.
    const [logs] = await this.#logs({ blockHash: block!.hash }, deposits, [], signal);
    return (await this.#paymentsOf([block!], logs, deposits, signal))[0]!;
  }

  async range(from: number, to: number, addresses: ReadonlySet<string>, signal: AbortSignal): Promise<Block[]> {
    try {
      const blocks = await this.#readRange(from, to, addresses, signal);
      this.#range = Math.min(this.#rangeMax, this.#range * 2);
      return blocks;
    } catch (fault) {
      this.#range = Math.max(1, this.#range >> 1);
      throw fault;
    }
  }

  async #readRange(from: number, to: number, addresses: ReadonlySet<string>, signal: AbortSignal): Promise<Block[]> {
    const deposits = this.#lowerCase(addresses);
    const isFull = this.#isFull(deposits);
    const heights = isFull ? Array.from({ length: to - from + 1 }, (_, index) => from + index) : [from, to];
    const blocks = await this.#blocks(heights, isFull, signal);
    // A node that lags silently finds nothing. So the same node must also know the last block.
    const [logs, last] = await this.#logs(
      { fromBlock: hex(from), toBlock: hex(to) },
      deposits,
      [blockCall(to, false)],
      signal,
    );
    const others = [...new Set(logs.map(({ blockNumber }) => Number(blockNumber)))].filter((n) => !heights.includes(n));
    blocks.push(...(await this.#blocks(others, false, signal)));
    const found = new Map(blocks.map((block) => [block.height, block]));
    const isBroken = blocks.some(
      ({ height, parent }) => found.has(height - 1) && found.get(height - 1)!.hash !== parent,
    );
    const isMoved = logs.some((log) => found.get(Number(log.blockNumber))!.hash !== log.blockHash);
    if (isBroken || isMoved || blockOf(last as EvmBlock | null).hash !== found.get(to)!.hash)
      throw new Error(`${this.network} changed while the worker read blocks ${from} to ${to}.`);
    const filled = await this.#paymentsOf(
      blocks.toSorted((a, b) => a.height - b.height),
      logs,
      deposits,
      signal,
    );
    return filled.filter(({ height, payments }) => payments.length || height === from || height === to);
  }

  #lowerCase(addresses: ReadonlySet<string>): DepositAddresses {
    const known = this.#deposits.get(addresses) ?? new Map([...addresses].map((one) => [one.toLowerCase(), one]));
    this.#deposits.set(addresses, known);
    return known;
  }

  #isFull(deposits: DepositAddresses): boolean {
    return this.#chain.native !== undefined && deposits.size > 0;
  }

  async #blocks(heights: readonly number[], full: boolean, signal: AbortSignal) {
    const found = await this.#rpc.batch<EvmBlock | null>(
      signal,
      heights.map((height) => blockCall(height, full)),
    );
    return found.map(blockOf);
  }

  /** The transfers of accepted tokens to these addresses, and the result of the last of the other calls. */
  async #logs(
    where: object,
    deposits: DepositAddresses,
    others: readonly Call[],
    signal: AbortSignal,
  ): Promise<[Log[], unknown]> {
    const address = [...this.#chain.tokens.keys()];
    const topics = [...deposits.keys()].map(topicOf);
    const calls: Call[] = [];
    for (let from = 0; address.length && from < topics.length; from += TOPICS_MAX) {
      const to = topics.slice(from, from + TOPICS_MAX);
      calls.push(['eth_getLogs', { ...where, address, topics: [TRANSFER, null, to] }]);
    }
    const answers = await this.#rpc.batch<Log[]>(signal, [...calls, ...others]);
    return [answers.slice(0, calls.length).flat(), answers.at(-1)];
  }

  async #paymentsOf(
    blocks: readonly ReturnType<typeof blockOf>[],
    logs: readonly Log[],
    deposits: DepositAddresses,
    signal: AbortSignal,
  ): Promise<Block[]> {
    const { native } = this.#chain;
    const transfers = logs.map(transferOf).filter((one) => one !== undefined);
    const paid = native
      ? blocks.flatMap(({ transactions }) =>
          transactions.filter(({ to, value }) => deposits.has(to?.toLowerCase() ?? '') && BigInt(value) > 0n),
        )
      : [];
    const receipts = await this.#receipts(
      [...transfers.map(({ log }) => log.transactionHash), ...paid.map(({ hash }) => hash)],
      signal,
    );
    const inBlock = (txId: string, hash: string): Receipt => {
      const receipt = receipts.get(txId);
      if (receipt?.blockHash !== hash) throw new Error(`${this.network} changed while the worker read ${txId}.`);
      return receipt;
    };
    return blocks.map(
      ({ height, hash, parent, at }): Block => ({
        height,
        hash,
        parent,
        at,
        payments: [
          ...transfers
            .filter(({ log }) => log.blockHash === hash)
            .flatMap((one) => this.#ofToken(one, inBlock(one.log.transactionHash, hash), deposits)),
          ...paid
            .filter(({ blockHash }) => blockHash === hash)
            .filter((tx) => inBlock(tx.hash, hash).status === '0x1')
            .map(
              ({ hash: txId, to, value }): ObservedPayment => ({
                txId,
                position: NATIVE_POSITION,
                coin: native!,
                units: BigInt(value),
                address: deposits.get(to!.toLowerCase())!,
              }),
            ),
        ],
      }),
    );
  }

  /** Takes the position in the receipt. The position in the block would change in a reorganisation. */
  #ofToken({ log, to, units }: Transfer, { logs }: Receipt, deposits: DepositAddresses): ObservedPayment[] {
    const [coin, address] = [this.#chain.tokens.get(log.address.toLowerCase()), deposits.get(to)];
    const position = logs.findIndex(({ logIndex }) => logIndex === log.logIndex);
    return coin && address && position >= 0 ? [{ txId: log.transactionHash, position, coin, address, units }] : [];
  }

  async #receipts(txIds: readonly string[], signal: AbortSignal): Promise<Map<string, Receipt>> {
    const wanted = [...new Set(txIds)];
    const found = await this.#rpc.batch<Receipt | null>(
      signal,
      wanted.map((txId): Call => ['eth_getTransactionReceipt', txId]),
    );
    return new Map(found.filter((one) => one !== null).map((receipt) => [receipt.transactionHash, receipt]));
  }
}

const hex = (height: number): string => `0x${height.toString(16)}`;
const blockCall = (height: number, full: boolean): Call => ['eth_getBlockByNumber', hex(height), full];
