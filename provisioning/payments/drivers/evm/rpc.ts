/** The answers of EVM nodes, and how the reader interprets them. */

export interface Transaction {
  hash: string;
  blockHash: string;
  blockNumber: string;
  to: string | null;
  value: string;
}

export interface EvmBlock {
  number: string;
  hash: string;
  parentHash: string;
  /** Seconds since the epoch. */
  timestamp: string;
  /** Hashes, or full transactions if the call asked for them. */
  transactions: (string | Transaction)[];
}

export interface Log {
  address: string;
  topics: string[];
  data: string;
  blockHash: string;
  blockNumber: string;
  transactionHash: string;
  /** The position in the block. */
  logIndex: string;
}

export interface Receipt {
  transactionHash: string;
  blockHash: string;
  blockNumber: string;
  /** 0x1: success. */
  status: string;
  logs: Pick<Log, 'logIndex'>[];
}

/** Reads a block. @throws Error if the node does not have it (yet) */
export function blockOf(block: EvmBlock | null) {
  if (!block) throw new Error('The node does not have that block.');
  const { number, hash, parentHash: parent, timestamp, transactions } = block;
  return {
    height: Number(number),
    hash,
    parent,
    at: new Date(Number(timestamp) * 1000),
    transactions: transactions.filter((one) => typeof one !== 'string'),
  };
}

/** A transfer of a token. */
export interface Transfer {
  log: Log;
  /** In lower case. */
  to: string;
  units: bigint;
}

/** keccak256('Transfer(address,address,uint256)') */
export const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';

/** Reads a transfer. ERC-721 has the same event, with another topic instead of an amount. A transfer of 0 does not count. */
export function transferOf(log: Log): Transfer | undefined {
  const { topics, data } = log;
  if (topics.length !== 3 || topics[0] !== TRANSFER || !/^0x[0-9a-f]{64}$/i.test(data) || BigInt(data) === 0n)
    return undefined;
  return { log, to: `0x${topics[2]!.slice(26).toLowerCase()}`, units: BigInt(data) };
}
