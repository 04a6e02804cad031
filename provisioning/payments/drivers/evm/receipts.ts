/** Reads the receipts of an EVM chain, and finds the places of logs within them. */
import type { Call, JsonRpc } from '../json-rpc.ts';
import type { Log, Receipt, Transaction } from './rpc.ts';

/** A receipt, and the places of its logs by their positions in the block. */
export interface PlacedReceipt extends Pick<Receipt, 'blockHash' | 'status'> {
  places: ReadonlyMap<string, number>;
}

/**
 * For more transactions of a block, one call asks for all its receipts. Dust would otherwise use up the limit of a node. The
 * reader cannot leave dust out, because the books count its units.
 */
const ALONE_MAX = 3;

interface Options {
  rpc: JsonRpc;
  batchMax: number;
}

export class Receipts {
  readonly #options: Options;
  /** The receipts of the last blocks, by the ids of transactions. The next try after a fault goes on from there. */
  readonly #kept = new Map<string, PlacedReceipt>();

  constructor(options: Options) {
    this.#options = options;
  }

  /** The receipts of these logs and transactions, by the ids of transactions. A receipt may name another block. */
  async of(logs: readonly Log[], paid: readonly Transaction[], signal: AbortSignal) {
    const sent = logs.map(({ transactionHash: hash, blockHash, blockNumber }) => ({ hash, blockHash, blockNumber }));
    const blocks = Map.groupBy([...sent, ...paid], ({ blockHash }) => blockHash);
    for (const [txId, { blockHash }] of this.#kept) if (!blocks.has(blockHash)) this.#kept.delete(txId);
    for (const transactions of blocks.values()) {
      const missing = this.#missingOf(transactions);
      if (missing.size > ALONE_MAX) await this.#askWhole(transactions[0]!.blockNumber, missing, signal);
    }
    await this.#askAlone(this.#missingOf([...blocks.values()].flat()), signal);
    const receipts = new Map(this.#kept);
    const lost = logs.filter(({ transactionHash }) => !receipts.has(transactionHash));
    for (const one of await rebuild(this.#options.rpc, lost, signal)) receipts.set(one.transactionHash, placed(one));
    return receipts;
  }

  #missingOf(transactions: readonly Pick<Transaction, 'hash'>[]): Set<string> {
    return new Set(transactions.map(({ hash }) => hash).filter((txId) => !this.#kept.has(txId)));
  }

  /**
   * Some nodes lack this call, refuse so long an answer, or leave out transactions. The reader asks for the rest alone. Older
   * nodes know the block only by its height.
   */
  async #askWhole(height: string, wanted: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const asked = this.#options.rpc.call<Receipt[] | null>(signal, 'eth_getBlockReceipts', height);
    const found = await asked.catch(() => signal.throwIfAborted());
    for (const one of found ?? []) if (wanted.has(one.transactionHash)) this.#keep(one);
  }

  async #askAlone(wanted: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const { rpc, batchMax } = this.#options;
    const calls = [...wanted].map((txId): Call => ['eth_getTransactionReceipt', txId]);
    for (let from = 0; from < calls.length; from += batchMax) {
      const found = await rpc.batch<Receipt | null>(signal, calls.slice(from, from + batchMax));
      for (const one of found) if (one) this.#keep(one);
    }
  }

  #keep(receipt: Receipt): void {
    this.#kept.set(receipt.transactionHash, placed(receipt));
  }
}

/**
 * Rebuilds receipts that a node lacks, by the logs of their blocks. Some nodes have no receipt for coins that come over a bridge,
 * such as that of Polygon. The chain would otherwise wait for it.
 */
async function rebuild(rpc: JsonRpc, lost: readonly Log[], signal: AbortSignal): Promise<Receipt[]> {
  const receipts: Receipt[] = [];
  for (const [blockHash, wanted] of Map.groupBy(lost, (log) => log.blockHash)) {
    const all = await rpc.call<Log[]>(signal, 'eth_getLogs', { blockHash });
    for (const { transactionHash, blockNumber } of wanted) {
      const logs = all.filter((log) => log.transactionHash === transactionHash && log.blockHash === blockHash);
      logs.sort((one, other) => Number(one.logIndex) - Number(other.logIndex));
      // A log exists only if its transaction succeeded.
      if (logs.length) receipts.push({ transactionHash, blockHash, blockNumber, status: '0x1', logs });
    }
  }
  return receipts;
}

const placed = ({ blockHash, status, logs }: Receipt): PlacedReceipt => ({
  ...{ blockHash, status },
  places: new Map(logs.map(({ logIndex }, place) => [logIndex, place])),
});
