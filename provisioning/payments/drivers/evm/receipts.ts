/** Reads the receipts of an EVM chain, and finds the places of logs within them. */
import type { Call, JsonRpc } from '../json-rpc.ts';
import type { Log, Receipt } from './rpc.ts';

/** A receipt, and the places of its logs by their positions in the block. */
export type PlacedReceipt = Receipt & { places: ReadonlyMap<string, number> };

/** The receipts of these logs and transactions, by the ids of transactions. */
export async function receiptsOf(
  rpc: JsonRpc,
  logs: readonly Log[],
  txIds: readonly string[],
  signal: AbortSignal,
): Promise<Map<string, PlacedReceipt>> {
  const wanted = [...new Set([...logs.map(({ transactionHash }) => transactionHash), ...txIds])];
  const found = await rpc.batch<Receipt | null>(
    signal,
    wanted.map((txId): Call => ['eth_getTransactionReceipt', txId]),
  );
  const receipts = new Map<string, PlacedReceipt>();
  for (const one of found) if (one) receipts.set(one.transactionHash, placed(one));
  const lost = logs.filter(({ transactionHash }) => !receipts.has(transactionHash));
  for (const one of await rebuild(rpc, lost, signal)) receipts.set(one.transactionHash, placed(one));
  return receipts;
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

const placed = (receipt: Receipt): PlacedReceipt => ({
  ...receipt,
  places: new Map(receipt.logs.map(({ logIndex }, place) => [logIndex, place])),
});
