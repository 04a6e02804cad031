/**
 * Reads a chain block by block, and notices removed blocks by their hashes. The worker writes a block and its payments in
 * one transaction, under a lock of the chain. So two workers cannot write different histories.
 */
import { LessThan, MoreThan } from 'typeorm';
import type { Database } from '../../../entities/database/database.ts';
import { LOCK_NAME } from '../../../entities/database/lock-name.ts';
import { findAll, insert, remove } from '../../../entities/database/table.ts';
import type { Queryable, Transaction } from '../../../entities/database/transaction.ts';
import { ChainBlock, FIND_TIP } from '../../../entities/payments/chain.ts';
import { UNMINE_PAYMENTS } from '../../../entities/payments/observed-payment.ts';
import { FIND_DEPOSIT_ADDRESSES } from '../../../entities/payments/top-up.ts';
import type { Block, ChainNode, FindDeposits, Head } from '../drivers/driver.ts';
import { type LostAddressMap, tellLost } from './lost-addresses.ts';
import { writeObserved } from './observed-payments.ts';
import { joinOutputs } from './outputs.ts';

/** Reads of one step. Between steps the worker renews its lease and credits payments. */
const READS_MAX = 100;
/** Blocks that the service remembers. A chain without any of them is another chain. */
const BLOCKS_KEPT = 1_000;
/** Reading begins so far below the head. Then an early reorganisation finds a block to continue from. */
const BLOCKS_BEFORE = 20;
/** Readers may read blocks this deep in ranges, because reorganisations hardly reach them. */
const DEPTH = 64;

/** A node that claims to have replaced blocks. The worker believes it when a second look finds the same. */
export interface Doubt {
  /** The height of the last block that the node shares with those that were read. */
  height: number;
  /** The head of the node. */
  head: number;
}

export interface Progress {
  /** `waiting`: the node is behind the blocks that were read, or replaces some of them. */
  state: 'behind' | 'reached' | 'waiting';
  head: number;
  /** The height of the last block that the worker has read. */
  height: number;
  doubt?: Doubt;
  /** The problem that the chain has had until now; null: none. */
  problem: string | null;
}

type Tip = Pick<ChainBlock, 'height' | 'hash'>;

/**
 * Reads new blocks from one node, up to a limit.
 * @param head the highest block of the node
 * @param given the doubt of the look before, if it had one, and the lost addresses of the chain
 * @throws Error if it is another chain than before, or lacks a final block
 */
export async function readBlocks(
  db: Database,
  network: string,
  node: ChainNode,
  head: Head,
  { doubted, lost, signal }: { doubted: Doubt | undefined; lost: LostAddressMap; signal: AbortSignal },
): Promise<Progress> {
  const before = await tipOf(db, network);
  const progress = (state: Progress['state'], height: number): Progress => ({
    ...{ state, height, head: head.height },
    problem: before?.problem ?? null,
  });
  if (before?.hash === head.hash) return progress('reached', head.height);
  // A node tells which blocks were replaced only when its head is above them. Until then it may just be late.
  if (before && before.height >= head.height) return progress('waiting', before.height);
  const last = before && (await lastOnChain(db, network, node, before, signal));
  if (last && last.height < before.height) {
    const doubt = { height: last.height, head: head.height };
    const isSure = doubted?.height === doubt.height && doubted.head <= doubt.head;
    if (!isSure) return { ...progress('waiting', before.height), doubt };
    await db.transaction((tx) => removeBlocks(tx, network, last, before));
  }
  let tip: Tip | undefined = last;
  for (let reads = 0; !tip || tip.height < head.height; reads++) {
    const next: number = tip ? tip.height + 1 : Math.max(0, head.height - BLOCKS_BEFORE);
    if (reads === READS_MAX) return progress('behind', next - 1);
    const blocks = await readNext(node, next, head.height, findDepositsIn(db, lost), signal).catch((fault) => {
      signal.throwIfAborted();
      // The blocks before are a success, so that the worker does not rest for longer each time.
      if (!reads) throw fault;
    });
    if (!blocks) return progress('behind', next - 1);
    const parent: string | undefined = tip?.hash;
    const isNext = parent === undefined || blocks[0]!.parent === parent;
    if (!isNext || !(await db.transaction((tx) => writeBlocks(tx, network, blocks, parent, lost))))
      return progress('behind', next - 1);
    tip = blocks.at(-1)!;
  }
  return progress('reached', tip.height);
}

/** Reads the next block, or several deep ones at once if the reader can. */
async function readNext(
  node: ChainNode,
  next: number,
  head: number,
  find: FindDeposits,
  signal: AbortSignal,
): Promise<Block[]> {
  const to = Math.min(next + (node.rangeMax ?? 1) - 1, head - DEPTH);
  if (node.range && to > next) return node.range(next, to, find, signal);
  return [await node.block(next, find, signal)];
}

/** Finds the last known block that the node still has. */
async function lastOnChain(
  db: Database,
  network: string,
  node: ChainNode,
  tip: Tip & { finalHeight: number | null },
  signal: AbortSignal,
): Promise<Tip> {
  const isOn = async ({ height, hash }: Tip) => {
    const found = await node.hash(height, signal);
    if (found === undefined)
      throw new Error(`The node lacks the block ${height} of ${network}, which is below its head.`);
    return found === hash;
  };
  if (await isOn(tip)) return tip;
  const kept = await findAll(db, ChainBlock, { network }, { height: 'ASC' });
  let [shared, gone] = [-1, kept.length - 1];
  while (gone - shared > 1) {
    const middle = (shared + gone) >> 1;
    if (await isOn(kept[middle]!)) shared = middle;
    else gone = middle;
  }
  const last = kept[shared];
  if (!last) throw new Error(`${network} is another chain than before: the node has none of the known blocks.`);
  const { height, hash } = kept[gone]!;
  if (last.height < (tip.finalHeight ?? 0))
    throw new Error(`${network} is another chain than before: the node lacks the final block ${height}, ${hash}.`);
  return last;
}

/** The highest block that the worker has read. */
export const tipOf = (db: Queryable, network: string) => FIND_TIP.first(db, [network]);

/** Locks the chain, so that no other transaction changes its blocks. */
export const lockChain = (tx: Transaction, network: string) => LOCK_NAME.all(tx, [`follow:${network}`]);

/** Locks the chain. @returns whether its tip still has that hash: if not, another worker was faster */
async function lockTip(tx: Transaction, network: string, hash: string | undefined): Promise<boolean> {
  await lockChain(tx, network);
  return (await tipOf(tx, network))?.hash === hash;
}

/** @param parent the hash of the previous tip. @returns false if another worker was faster */
async function writeBlocks(
  tx: Transaction,
  network: string,
  blocks: readonly Block[],
  parent: string | undefined,
  lost: LostAddressMap,
) {
  if (!(await lockTip(tx, network, parent))) return false;
  const rows = blocks.map(({ height, hash }) => ({ network, height, hash }));
  await insert(tx, ChainBlock, rows);
  await remove(tx, ChainBlock, { network, height: LessThan(rows.at(-1)!.height - BLOCKS_KEPT) });
  for (const block of blocks) {
    const payments = await joinOutputs(tx, network, block.payments);
    await writeObserved(tx, { network, block }, payments);
    await tellLost(tx, network, payments, lost);
  }
  return true;
}

async function removeBlocks(tx: Transaction, network: string, last: Tip, tip: Tip): Promise<void> {
  if (!(await lockTip(tx, network, tip.hash))) return;
  await remove(tx, ChainBlock, { network, height: MoreThan(last.height) });
  for (const unmine of UNMINE_PAYMENTS) await unmine.all(tx, [network, last.height]);
}

/** Finds addresses of top-ups of all times and networks, and lost ones. */
export const findDepositsIn =
  (db: Database, lost: LostAddressMap = new Map()): FindDeposits =>
  async (addresses) => {
    const given = [...new Set([...addresses].map((one) => one.toLowerCase()))];
    const rows = given.length ? await FIND_DEPOSIT_ADDRESSES.all(db, [given]) : [];
    const found = [
      ...rows.map(({ walletAddress }) => walletAddress),
      ...given.flatMap((one) => lost.get(one)?.address ?? []),
    ];
    return new Map(found.map((address) => [address.toLowerCase(), address]));
  };
