/** Reads a chain of Bitcoin's family from a node by its RPC. The node needs no wallet and no key. */
import type { Block, ChainReader, ObservedPayment } from '../driver.ts';
import { type Call, JsonRpc, RpcError } from '../json-rpc.ts';
import type { UtxoChain } from './chains.ts';

/** The most announced transactions of one poll. The others follow in the next poll. */
const ANNOUNCED_MAX = 5_000;
const BATCH_MAX = 100;
/** A node that lacks more blocks than these still syncs its chain for the first time. */
const HEADERS_AHEAD_MAX = 20;
/** "Block height out of range" */
const NO_SUCH_HEIGHT = -8;
/** "No such mempool transaction": a block has it, or another replaced it. */
const NO_SUCH_TRANSACTION = -5;

export interface UtxoNode {
  network: string;
  chain: UtxoChain;
  url: string;
  pollSeconds: number;
  /** Called at each request, because the cookie changes at each start of the node. */
  credentials: () => string;
}

interface Progress {
  blocks: number;
  headers: number;
  bestblockhash: string;
}
interface Output {
  n: number;
  /** In the coin. */
  value: number;
  scriptPubKey: { address?: string; addresses?: string[] };
}
interface Transaction {
  txid: string;
  vout: Output[];
}
interface NodeBlock<T> {
  hash: string;
  height: number;
  previousblockhash?: string;
  /** Seconds since the epoch. */
  time: number;
  tx: T[];
}

export class UtxoReader implements ChainReader {
  readonly network: string;
  readonly pollSeconds: number;
  readonly #fullBlocks: boolean;
  readonly #rpc: JsonRpc;
  /** Announced transactions with their payments. A later address cannot occur in them. */
  #announced = new Map<string, ObservedPayment[]>();
  readonly #code: string;

  constructor({ network, chain, url, pollSeconds, credentials }: UtxoNode) {
    this.network = network;
    this.pollSeconds = pollSeconds;
    this.#fullBlocks = chain.fullBlocks;
    this.#code = chain.code;
    this.#rpc = new JsonRpc({
      urls: [url],
      authorization: () => `Basic ${Buffer.from(credentials()).toString('base64')}`,
      batchMax: BATCH_MAX,
      verify: async (call) => {
        if ((await call('getblockhash', 0)) !== chain.genesis)
          throw new Error(`The node belongs to another chain than ${network}.`);
      },
    });
  }

  async head(signal: AbortSignal) {
    const found = await this.#rpc.call<Progress>(signal, 'getblockchaininfo');
    const { blocks: height, headers, bestblockhash: hash } = found;
    if (headers - height > HEADERS_AHEAD_MAX)
      throw new Error(`The node still syncs its chain: it has ${height} of ${headers} blocks.`);
    return { height, hash };
  }

  async hash(height: number, signal: AbortSignal) {
    return this.#rpc.call<string>(signal, 'getblockhash', height).catch(orNothing(NO_SUCH_HEIGHT));
  }

  async block(height: number, addresses: ReadonlySet<string>, signal: AbortSignal): Promise<Block> {
    const hash = await this.#rpc.call<string>(signal, 'getblockhash', height);
    const { previousblockhash: parent = '', time, tx } = await this.#whole(hash, signal);
    return {
      height,
      hash,
      parent,
      at: new Date(time * 1000),
      payments: tx.flatMap((one) => this.#paymentsOf(one, addresses)),
    };
  }

  async announced(addresses: ReadonlySet<string>, signal: AbortSignal): Promise<ObservedPayment[]> {
    if (!addresses.size) return [];
    const ids = await this.#rpc.call<string[]>(signal, 'getrawmempool');
    const fresh = ids.filter((id) => !this.#announced.has(id)).slice(0, ANNOUNCED_MAX);
    const kept = new Map(
      ids.flatMap((id) => (this.#announced.has(id) ? [[id, this.#announced.get(id)!] as const] : [])),
    );
    for (let from = 0; from < fresh.length; from += BATCH_MAX)
      for (const one of await this.#announcements(fresh.slice(from, from + BATCH_MAX), signal))
        kept.set(one.txid, this.#paymentsOf(one, addresses));
    this.#announced = kept;
    return [...kept.values()].flat();
  }

  async #whole(hash: string, signal: AbortSignal): Promise<NodeBlock<Transaction>> {
    if (this.#fullBlocks) return this.#rpc.call(signal, 'getblock', hash, 2);
    const block = await this.#rpc.call<NodeBlock<string>>(signal, 'getblock', hash, true);
    // The index has no transaction of the first block, which pays no deposit address.
    const ids = block.height ? block.tx : [];
    return { ...block, tx: await this.#rpc.batch<Transaction>(signal, ids.map(transactionCall)) };
  }

  /** Reads announced transactions. A vanished transaction fails its batch, so the reader halves the batch. */
  async #announcements(ids: readonly string[], signal: AbortSignal): Promise<Transaction[]> {
    const found = await this.#rpc
      .batch<Transaction>(signal, ids.map(transactionCall))
      .catch(orNothing(NO_SUCH_TRANSACTION));
    if (found) return found;
    if (ids.length === 1) return [];
    const half = ids.length >> 1;
    return [
      ...(await this.#announcements(ids.slice(0, half), signal)),
      ...(await this.#announcements(ids.slice(half), signal)),
    ];
  }

  #paymentsOf({ txid, vout }: Transaction, addresses: ReadonlySet<string>): ObservedPayment[] {
    return vout.flatMap(({ n, value, scriptPubKey }) => {
      const address = addressOf(scriptPubKey);
      if (address === undefined || !addresses.has(address) || value <= 0) return [];
      return [{ txId: txid, position: n, coin: this.#code, address, units: unitsOf(value) }];
    });
  }
}

const transactionCall = (id: string): Call => ['getrawtransaction', id, true];

/** Older nodes return a list. An output of several keys has several addresses, and counts as none. */
const addressOf = ({ address, addresses }: Output['scriptPubKey']): string | undefined =>
  address ?? (addresses?.length === 1 ? addresses[0] : undefined);

/** Nodes write 8 decimals. A double keeps all of them up to 90 million coins, which is more than any top-up. */
const unitsOf = (value: number): bigint => BigInt(value.toFixed(8).replace('.', ''));

const orNothing = (code: number) => (fault: unknown) => {
  if (fault instanceof RpcError && fault.code === code) return undefined;
  throw fault;
};
