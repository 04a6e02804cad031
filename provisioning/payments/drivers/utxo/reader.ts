/** Reads a chain of Bitcoin's family from a node by its RPC. The node needs no wallet and no key. */
import type { Announced, Block, ChainNode, FindDeposits, Head, ObservedPayment } from '../driver.ts';
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
const NO_SUCH_METHOD = -32601;

export interface UtxoNode {
  network: string;
  chain: UtxoChain;
  url: string;
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
  /** Absent: an output of MWEB on Litecoin, which no deposit address can have. */
  scriptPubKey?: { address?: string; addresses?: string[] };
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

export class UtxoReader implements ChainNode {
  readonly #fullBlocks: boolean;
  readonly #rpc: JsonRpc;
  /** Announced transactions with their payments. A later address cannot occur in them. */
  #announced = new Map<string, ObservedPayment[]>();
  readonly #code: string;
  /** The head of the last answer, because older nodes need another call for its time. */
  #head: Head | undefined;

  constructor({ network, chain, url, credentials }: UtxoNode) {
    this.#fullBlocks = chain.fullBlocks;
    this.#code = chain.code;
    this.#rpc = new JsonRpc({
      url,
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
    if (this.#head?.hash !== hash) {
      const { time } = await this.#rpc.call<{ time: number }>(signal, 'getblockheader', hash);
      this.#head = { height, hash, at: new Date(time * 1000) };
    }
    return this.#head;
  }

  async hash(height: number, signal: AbortSignal) {
    return this.#rpc.call<string>(signal, 'getblockhash', height).catch(orNothing(NO_SUCH_HEIGHT));
  }

  async block(height: number, find: FindDeposits, signal: AbortSignal): Promise<Block> {
    const hash = await this.#rpc.call<string>(signal, 'getblockhash', height);
    const { previousblockhash: parent = '', time, tx } = await this.#whole(hash, signal);
    const payments = [...(await this.#paymentsOf(tx, find)).values()].flat();
    return { height, hash, parent, at: new Date(time * 1000), payments };
  }

  async announced(find: FindDeposits, signal: AbortSignal): Promise<Announced> {
    const ids = await this.#rpc.call<string[]>(signal, 'getrawmempool');
    const unread = ids.filter((id) => !this.#announced.has(id));
    const fresh = unread.slice(0, ANNOUNCED_MAX);
    const kept = new Map(
      ids.flatMap((id) => (this.#announced.has(id) ? [[id, this.#announced.get(id)!] as const] : [])),
    );
    const read: Transaction[] = [];
    for (let from = 0; from < fresh.length; from += BATCH_MAX)
      read.push(...(await this.#announcements(fresh.slice(from, from + BATCH_MAX), signal)));
    for (const [txId, payments] of await this.#paymentsOf(read, find)) kept.set(txId, payments);
    this.#announced = kept;
    return { payments: [...kept.values()].flat(), isComplete: fresh.length === unread.length };
  }

  /** @throws Error if the node has no whole index, because it then knows only announced transactions */
  async heightOf(txId: string, signal: AbortSignal) {
    const hasIndex = await this.#hasIndex(signal);
    const call = this.#rpc.call<{ blockhash?: string }>(signal, ...transactionCall(txId));
    const found = await call.catch(orNothing(NO_SUCH_TRANSACTION));
    if (!found && !hasIndex) throw new Error('The node has no whole index of transactions. Start it with txindex=1.');
    if (found?.blockhash === undefined) return found && null;
    return (await this.#rpc.call<{ height: number }>(signal, 'getblockheader', found.blockhash)).height;
  }

  /** A node of Dogecoin lacks this call. It always has the index, because it gives no block without it. */
  async #hasIndex(signal: AbortSignal): Promise<boolean> {
    const call = this.#rpc.call<{ txindex?: { synced: boolean } }>(signal, 'getindexinfo', 'txindex');
    const found = await call.catch(orNothing(NO_SUCH_METHOD));
    return found ? found.txindex?.synced === true : !this.#fullBlocks;
  }

  /** A node of Dogecoin lacks this call. On a large chain it takes minutes, which is longer than the timeout of a call. */
  async balances(addresses: readonly string[], signal: AbortSignal) {
    const scanned = addresses.map((address) => `addr(${address})`);
    const call = this.#rpc.call<{ total_amount: number }>(signal, 'scantxoutset', 'start', scanned);
    const found = await call.catch(orNothing(NO_SUCH_METHOD));
    return found && new Map([[this.#code, unitsOf(found.total_amount)]]);
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

  /** The payments to deposit addresses by their transactions. */
  async #paymentsOf(transactions: readonly Transaction[], find: FindDeposits): Promise<Map<string, ObservedPayment[]>> {
    const outputs = transactions.flatMap(({ vout }) => vout.map(({ scriptPubKey }) => addressOf(scriptPubKey) ?? []));
    const deposits = await find(outputs.flat());
    const isOurs = (address: string): boolean => deposits.get(address.toLowerCase()) === address;
    return new Map(
      transactions.map(({ txid, vout }) => {
        const payments = vout.flatMap(({ n, value, scriptPubKey }) => {
          const address = addressOf(scriptPubKey);
          if (address === undefined || value <= 0 || !isOurs(address)) return [];
          return [{ txId: txid, position: n, coin: this.#code, address, units: unitsOf(value) }];
        });
        return [txid, payments];
      }),
    );
  }
}

const transactionCall = (id: string): Call => ['getrawtransaction', id, true];

/** Older nodes return a list. An output of several keys has several addresses, and counts as none. */
const addressOf = ({ address, addresses }: Output['scriptPubKey'] = {}): string | undefined =>
  address ?? (addresses?.length === 1 ? addresses[0] : undefined);

/** Nodes write 8 decimals. A double keeps all of them up to 90 million coins, which is more than any top-up. */
const unitsOf = (value: number): bigint => BigInt(value.toFixed(8).replace('.', ''));

const orNothing = (code: number) => (fault: unknown) => {
  if (fault instanceof RpcError && fault.code === code) return undefined;
  throw fault;
};
