/**
 * Reads an EVM chain over JSON-RPC. It finds transfers of tokens by their logs (ERC-20), and the native coin by transactions
 * directly to an address. The reader cannot see native coins that a contract passes on, because they leave no trace in a
 * block.
 */
import { createHash } from 'node:crypto';
import type { Block, ChainNode, FindDeposits, ObservedPayment, TokenCode } from '../driver.ts';
import { type Call, JsonRpc, RpcError } from '../json-rpc.ts';
import { balancesAt } from './balances.ts';
import { type PlacedReceipt, Receipts } from './receipts.ts';
import { blockOf, type EvmBlock, type Log, type Receipt, TRANSFER, type Transfer, transferOf } from './rpc.ts';

/** Full blocks of one range. One full block may have several hundred kilobytes. */
const FULL_BLOCKS_MAX = 50;
/** A range grows by this part after each success. Most answers of a busy token would otherwise exceed the limit of the node. */
const RANGE_GROWTH = 4;
/** The position of the native coin, which leaves no log in a receipt. */
const NATIVE_POSITION = -1;

/** decimals() */
const DECIMALS = '0x313ce567';

export interface EvmToken {
  /** Of the coin. */
  code: string;
  decimals: number;
  /** SHA-256 of its code in hexadecimal digits. Absent: the operator has not pinned it. */
  codeHash?: string;
}

export interface EvmChain {
  network: string;
  chainId: number;
  url: string;
  batchMax: number;
  rangeMax: number;
  /** The code of the native coin, if the operator accepts it. */
  native: string | undefined;
  /** By their contracts in lower case. */
  tokens: ReadonlyMap<string, EvmToken>;
}

type EvmBlockRead = ReturnType<typeof blockOf>;

/** Blocks as the node gave them, with their transfers to deposit addresses. */
interface Found {
  blocks: readonly EvmBlockRead[];
  transfers: readonly Transfer[];
  /** The original spelling of deposit addresses by their lower case. */
  deposits: ReadonlyMap<string, string>;
}

export class EvmReader implements ChainNode {
  readonly network: string;
  readonly #chain: EvmChain;
  readonly #rpc: JsonRpc;
  readonly #receipts: Receipts;
  /** The present size of ranges. Each failed range halves it. */
  #range: number;

  constructor(chain: EvmChain) {
    const { network, chainId, url, batchMax } = chain;
    this.#chain = chain;
    this.network = network;
    this.#range = this.#rangeMax;
    const verify = async (call: <T>(...call: Call) => Promise<T>) => {
      const found = Number(await call<string>('eth_chainId'));
      if (found !== chainId)
        throw new Error(`The node belongs to the chain ${found}, and not to ${chainId} (${network}).`);
      // Some public nodes refuse this call. They are always synced.
      const reading = await call<unknown>('eth_syncing').catch(() => false);
      if (reading) throw new Error('The node still syncs its chain.');
    };
    this.#rpc = new JsonRpc({ url, batchMax, verify });
    this.#receipts = new Receipts({ rpc: this.#rpc, batchMax });
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

  /** Some chains have no such tag. A busy node does not mean that. */
  async finalHeight(signal: AbortSignal) {
    const asked = this.#rpc.call<EvmBlock | null>(signal, 'eth_getBlockByNumber', 'finalized', false);
    const block = await asked.catch((fault) => (isUnknownTag(fault) ? null : Promise.reject(fault)));
    return block ? blockOf(block).height : undefined;
  }

  /** A proxy keeps its code when its implementation changes. */
  async tokenCodes(signal: AbortSignal): Promise<TokenCode[]> {
    const tokens = [...this.#chain.tokens];
    const calls = tokens.flatMap(([to]): Call[] => [
      ['eth_call', { to, data: DECIMALS }, 'latest'],
      ['eth_getCode', to, 'latest'],
    ]);
    const answers = await this.#rpc.batch<string>(signal, calls);
    return tokens.flatMap(([contract, { code, decimals, codeHash: pinned }], index) => {
      const [said, bytes] = [answers[2 * index]!, answers[2 * index + 1]!];
      const found = /^0x0*[0-9a-f]{1,2}$/.test(said) ? Number(said) : undefined;
      if (found !== decimals)
        throw new Error(
          `The token ${code} (${contract}) has ${found ?? 'no'} decimals, and the payments file says ${decimals}.`,
        );
      const codeHash = createHash('sha256').update(bytes.slice(2), 'hex').digest('hex');
      if (pinned && pinned !== codeHash)
        throw new Error(
          `The token ${code} (${contract}) has the codeHash ${codeHash}, and not that of the payments file.`,
        );
      return pinned ? [] : [{ contract, codeHash }];
    });
  }

  async heightOf(txId: string, signal: AbortSignal) {
    const receipt = await this.#rpc.call<Receipt | null>(signal, 'eth_getTransactionReceipt', txId);
    if (receipt) return receipt.status === '0x0' ? undefined : Number(receipt.blockNumber);
    const announced = await this.#rpc.call<object | null>(signal, 'eth_getTransactionByHash', txId);
    return announced ? null : undefined;
  }

  async balances(addresses: readonly string[], signal: AbortSignal) {
    const { height } = await this.head(signal);
    return balancesAt(this.#rpc, this.#chain, height, addresses, signal);
  }

  async block(height: number, find: FindDeposits, signal: AbortSignal): Promise<Block> {
    const blocks = await this.#blocks([height], this.#isFull, signal);
    const { hash: blockHash } = blocks[0]!;
    // Asks by the hash, because several nodes may share the URL. A node without the block may then answer that it has no logs.
    const [transfers, same] = await this.#transfers({ blockHash }, ['eth_getBlockByHash', blockHash, false], signal);
    blockOf(same);
    return (await this.#paymentsOf(await this.#found(blocks, transfers, find), signal))[0]!;
  }

  async range(from: number, to: number, find: FindDeposits, signal: AbortSignal): Promise<Block[]> {
    try {
      const blocks = await this.#readRange(from, to, find, signal);
      this.#range = Math.min(this.#rangeMax, this.#range + Math.ceil(this.#range / RANGE_GROWTH));
      return blocks;
    } catch (fault) {
      this.#range = Math.max(1, this.#range >> 1);
      throw fault;
    }
  }

  async #readRange(from: number, to: number, find: FindDeposits, signal: AbortSignal): Promise<Block[]> {
    const isFull = this.#isFull;
    const heights = isFull ? Array.from({ length: to - from + 1 }, (_, index) => from + index) : [from, to];
    const blocks = await this.#blocks(heights, isFull, signal);
    // A node that lags silently finds nothing. So the same node must also know the last block.
    const where = { fromBlock: hex(from), toBlock: hex(to) };
    const [all, last] = await this.#transfers(where, blockCall(to, false), signal);
    const { transfers, deposits } = await this.#found(blocks, all, find);
    const logs = transfers.map(({ log }) => log);
    const others = [...new Set(logs.map(({ blockNumber }) => Number(blockNumber)))].filter((n) => !heights.includes(n));
    blocks.push(...(await this.#blocks(others, false, signal)));
    const found = new Map(blocks.map((block) => [block.height, block]));
    const isBroken = blocks.some(
      ({ height, parent }) => found.has(height - 1) && found.get(height - 1)!.hash !== parent,
    );
    const isMoved = logs.some((log) => found.get(Number(log.blockNumber))!.hash !== log.blockHash);
    if (isBroken || isMoved || blockOf(last).hash !== found.get(to)!.hash)
      throw new Error(`${this.network} changed while the worker read blocks ${from} to ${to}.`);
    const sorted = blocks.toSorted((a, b) => a.height - b.height);
    const filled = await this.#paymentsOf({ blocks: sorted, transfers, deposits }, signal);
    return filled.filter(({ height, payments }) => payments.length || height === from || height === to);
  }

  get #isFull(): boolean {
    return this.#chain.native !== undefined;
  }

  async #blocks(heights: readonly number[], full: boolean, signal: AbortSignal) {
    const found = await this.#rpc.batch<EvmBlock | null>(
      signal,
      heights.map((height) => blockCall(height, full)),
    );
    return found.map(blockOf);
  }

  /**
   * All transfers of accepted tokens, and the block that another call of the same request names. A filter for recipients
   * would grow with every top-up.
   */
  async #transfers(where: object, block: Call, signal: AbortSignal): Promise<[Transfer[], EvmBlock | null]> {
    const address = [...this.#chain.tokens.keys()];
    const logs: Call[] = address.length ? [['eth_getLogs', { ...where, address, topics: [TRANSFER] }]] : [];
    const answers = await this.#rpc.batch<unknown>(signal, [...logs, block]);
    const found = answers.slice(0, logs.length).flat() as Log[];
    return [found.map(transferOf).filter((one) => one !== undefined), answers.at(-1) as EvmBlock | null];
  }

  /** Asks which recipients are deposit addresses. */
  async #found(blocks: readonly EvmBlockRead[], all: readonly Transfer[], find: FindDeposits): Promise<Found> {
    const natives = blocks.flatMap(({ transactions }) => transactions.flatMap(({ to }) => to ?? []));
    const deposits = await find([...all.map(({ to }) => to), ...natives]);
    return { blocks, transfers: all.filter(({ to }) => deposits.has(to)), deposits };
  }

  async #paymentsOf({ blocks, transfers, deposits }: Found, signal: AbortSignal): Promise<Block[]> {
    const { native } = this.#chain;
    const paid = blocks.flatMap(({ transactions }) =>
      transactions.filter(({ to, value }) => deposits.has(to?.toLowerCase() ?? '') && BigInt(value) > 0n),
    );
    const logs = transfers.map(({ log }) => log);
    const receipts = await this.#receipts.of(logs, paid, signal);
    const inBlock = (txId: string, hash: string): PlacedReceipt => {
      const receipt = receipts.get(txId);
      if (receipt?.blockHash !== hash) throw new Error(`${this.network} changed while the worker read ${txId}.`);
      return receipt;
    };
    const transfersIn = Map.groupBy(transfers, ({ log }) => log.blockHash);
    const paidIn = Map.groupBy(paid, ({ blockHash }) => blockHash);
    return blocks.map(
      ({ height, hash, parent, at }): Block => ({
        height,
        hash,
        parent,
        at,
        payments: [
          ...(transfersIn.get(hash) ?? []).flatMap((one) =>
            this.#ofToken(one, inBlock(one.log.transactionHash, hash), deposits),
          ),
          ...(paidIn.get(hash) ?? [])
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
  #ofToken({ log, to, units }: Transfer, { places }: PlacedReceipt, deposits: Found['deposits']): ObservedPayment[] {
    const [coin, address] = [this.#chain.tokens.get(log.address.toLowerCase())?.code, deposits.get(to)];
    const position = places.get(log.logIndex);
    return coin && address && position !== undefined
      ? [{ txId: log.transactionHash, position, coin, address, units }]
      : [];
  }
}

const TAG_UNKNOWN = new Set([-32000, -32601, -32602, -39001]);
const isUnknownTag = (fault: unknown): boolean =>
  fault instanceof RpcError && fault.status === 200 && TAG_UNKNOWN.has(fault.code);

const hex = (height: number): string => `0x${height.toString(16)}`;
const blockCall = (height: number, full: boolean): Call => ['eth_getBlockByNumber', hex(height), full];
