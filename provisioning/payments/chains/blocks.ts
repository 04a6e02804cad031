/**
 * Reads a chain block by block, and notices removed blocks by their hashes. The worker writes a block and its payments in
 * one transaction, under a lock of the chain. So two workers cannot write different histories.
 */
import { LessThan, MoreThan } from 'typeorm';
import type { Database } from '../../../entities/database/database.ts';
import { LOCK_NAME } from '../../../entities/database/lock-name.ts';
import { findAll, insert, remove } from '../../../entities/database/table.ts';
import type { Queryable, Transaction } from '../../../entities/database/transaction.ts';
import { ChainBlock, FIND_TIP, KEEP_CHAIN } from '../../../entities/payments/chain.ts';
import { moveObserved, UNMINE_PAYMENTS } from '../../../entities/payments/observed-payment.ts';
import { FIND_DEPOSIT_ADDRESSES } from '../../../entities/payments/top-up.ts';
import type { Block, ChainReader } from '../drivers/driver.ts';
import { writeObserved } from './observed-payments.ts';

/** Reads of one step. Between steps the worker renews its lease and credits payments. */
const READS_MAX = 100;
/** Blocks that the service remembers. A chain without any of them is another chain. */
const BLOCKS_KEPT = 1_000;
/** Reading begins so far below the head. Then an early reorganisation finds a block to continue from. */
const BLOCKS_BEFORE = 20;
/** Readers may read blocks this deep in ranges, because reorganisations hardly reach them. */
const DEPTH = 64;

/** `waiting`: the node is behind, because it has fewer blocks than the worker has read. */
export type Progress = 'behind' | 'reached' | 'waiting';

type Tip = Pick<ChainBlock, 'height' | 'hash'>;

/** Reads new blocks, up to a limit. @throws Error if it is another chain than before */
export async function readBlocks(db: Database, reader: ChainReader, signal: AbortSignal): Promise<Progress> {
  const head = await reader.head(signal);
  const before = await tipOf(db, reader.network);
  if (before?.hash === head.hash) return keep(db, reader, head.height, head.height, 'reached');
  if (before && before.height > head.height) return keep(db, reader, head.height, before.height, 'waiting');
  // Read after the head: a customer with a later address cannot have paid in one of these blocks.
  const addresses = await depositAddressesOf(db, reader.network);
  let tip = before && (await lastOnChain(db, reader, before, signal));
  for (let reads = 0; !tip || tip.height < head.height; reads++) {
    const next = tip ? tip.height + 1 : Math.max(0, head.height - BLOCKS_BEFORE);
    if (reads === READS_MAX) return keep(db, reader, head.height, next - 1, 'behind');
    const blocks = await readNext(reader, next, head.height, addresses, signal);
    const parent = tip?.hash;
    if (parent !== undefined && blocks[0]!.parent !== parent) return 'behind';
    if (!(await db.transaction((tx) => writeBlocks(tx, reader.network, blocks, parent)))) return 'behind';
    tip = blocks.at(-1)!;
  }
  return keep(db, reader, head.height, tip.height, 'reached');
}

/** Reads the next block, or several deep ones at once if the reader can. */
async function readNext(
  reader: ChainReader,
  next: number,
  head: number,
  addresses: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<Block[]> {
  const to = Math.min(next + (reader.rangeMax ?? 1) - 1, head - DEPTH);
  if (reader.range && to > next) return reader.range(next, to, addresses, signal);
  return [await reader.block(next, addresses, signal)];
}

/** Finds the last known block that is still on the chain, and removes those above it. */
async function lastOnChain(db: Database, reader: ChainReader, tip: Tip, signal: AbortSignal): Promise<Tip> {
  const isOn = async ({ height, hash }: Tip) => (await reader.hash(height, signal)) === hash;
  if (await isOn(tip)) return tip;
  const kept = await findAll(db, ChainBlock, { network: reader.network }, { height: 'ASC' });
  let [shared, gone] = [-1, kept.length - 1];
  while (gone - shared > 1) {
    const middle = (shared + gone) >> 1;
    if (await isOn(kept[middle]!)) shared = middle;
    else gone = middle;
  }
  const last = kept[shared];
  if (!last) throw new Error(`${reader.network} is another chain than before: it has none of the known blocks.`);
  await db.transaction((tx) => removeBlocks(tx, reader.network, last, tip));
  return last;
}

/** The highest block that the worker has read. */
export const tipOf = (db: Queryable, network: string): Promise<Tip | undefined> => FIND_TIP.first(db, [network]);

/** Locks the chain. @returns whether its tip still has that hash: if not, another worker was faster */
async function lockTip(tx: Transaction, network: string, hash: string | undefined): Promise<boolean> {
  await LOCK_NAME.all(tx, [`follow:${network}`]);
  return (await tipOf(tx, network))?.hash === hash;
}

/** @param parent the hash of the previous tip. @returns false if another worker was faster */
async function writeBlocks(tx: Transaction, network: string, blocks: readonly Block[], parent: string | undefined) {
  if (!(await lockTip(tx, network, parent))) return false;
  const rows = blocks.map(({ height, hash }) => ({ network, height, hash }));
  await insert(tx, ChainBlock, rows);
  await remove(tx, ChainBlock, { network, height: LessThan(rows.at(-1)!.height - BLOCKS_KEPT) });
  for (const block of blocks) {
    const payments = block.payments.map((payment) => ({ at: block.at, ...payment }));
    await writeObserved(tx, { network, block }, payments);
  }
  return true;
}

async function removeBlocks(tx: Transaction, network: string, last: Tip, tip: Tip): Promise<void> {
  if (!(await lockTip(tx, network, tip.hash))) return;
  await remove(tx, ChainBlock, { network, height: MoreThan(last.height) });
  const unmined = await UNMINE_PAYMENTS.all(tx, [network, last.height]);
  const open = unmined.flatMap(({ id, status }) => (status === 'MINED' ? [id] : []));
  await moveObserved(tx, 'SEEN', open);
}

/** Keeps how far the worker has read the chain. */
async function keep<P extends Progress>(
  db: Database,
  { network }: ChainReader,
  head: number,
  height: number,
  progress: P,
): Promise<P> {
  await KEEP_CHAIN.all(db, [network, head, height, progress === 'reached']);
  return progress;
}

/** The addresses of the network that the worker watches. */
export async function depositAddressesOf(db: Database, network: string): Promise<ReadonlySet<string>> {
  const rows = await FIND_DEPOSIT_ADDRESSES.all(db, [network]);
  return new Set(rows.map(({ walletAddress }) => walletAddress));
}
