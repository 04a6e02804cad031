/**
 * Reads a chain block by block, and by its hashes notices when blocks were taken back. Every block is written together with
 * what came in it, under a lock of its chain, so two workers cannot write different histories.
 */
import type { Database } from '../../../entities/database/database.ts';
import type { Queryable, Transaction } from '../../../entities/database/transaction.ts';
import type { Block, ChainReader } from '../drivers/driver.ts';
import { DEPOSIT_ADDRESS_SECONDS } from '../top-ups/await-payment.ts';
import { writeObserved } from './observed-payments.ts';

/** Reads of a step: the lease is renewed meanwhile, and what is there is credited before the next blocks are read. */
const READS_MAX = 100;
/** Blocks that are remembered: a chain that shares none of them is another chain. */
const BLOCKS_KEPT = 1_000;
/** Where a chain is begun, below its head, so that a reorganisation right then finds a block to begin from. */
const BLOCKS_BEFORE = 20;
/** Blocks this deep are read in ranges: nobody expects them to be taken back while they are read. */
const DEPTH = 64;

/** `waiting`: its node has fewer blocks than were read, so it is the node that is behind. */
export type Progress = 'behind' | 'reached' | 'waiting';

type Tip = { height: number; hash: string };

/** Reads the blocks that are new, so many at most. @throws Error if it is another chain than before */
export async function readBlocks(db: Database, reader: ChainReader, signal: AbortSignal): Promise<Progress> {
  const head = await reader.head(signal);
  const before = await tipOf(db, reader.network);
  if (before?.hash === head.hash) return noted(db, reader, head.height, head.height, 'reached');
  if (before && before.height > head.height) return noted(db, reader, head.height, before.height, 'waiting');
  // After the head: whoever was given an address later than that cannot have paid in a block that there was.
  const addresses = await depositAddressesOf(db, reader.network);
  let tip = before && (await lastOnChain(db, reader, before, signal));
  for (let reads = 0; !tip || tip.height < head.height; reads++) {
    const next = tip ? tip.height + 1 : Math.max(0, head.height - BLOCKS_BEFORE);
    if (reads === READS_MAX) return noted(db, reader, head.height, next - 1, 'behind');
    const blocks = await readNext(reader, next, head.height, addresses, signal);
    const parent = tip?.hash;
    if (parent !== undefined && blocks[0]!.parent !== parent) return 'behind';
    if (!(await db.transaction((tx) => writeBlocks(tx, reader.network, blocks, parent)))) return 'behind';
    tip = blocks.at(-1)!;
  }
  return noted(db, reader, head.height, tip.height, 'reached');
}

/** The next block; those that lie deep at once, where the reader can. */
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

/** The last of our blocks that is on the chain still; those above it are taken back. */
async function lastOnChain(db: Database, reader: ChainReader, tip: Tip, signal: AbortSignal): Promise<Tip> {
  const isOn = async ({ height, hash }: Tip) => (await reader.hash(height, signal)) === hash;
  if (await isOn(tip)) return tip;
  const kept = await db.query<Tip>('select height, hash from chain_block where network = $1 order by height', [
    reader.network,
  ]);
  let [shared, gone] = [-1, kept.length - 1];
  while (gone - shared > 1) {
    const middle = (shared + gone) >> 1;
    if (await isOn(kept[middle]!)) shared = middle;
    else gone = middle;
  }
  const last = kept[shared];
  if (!last)
    throw new Error(`${reader.network} is another chain than before: it has none of the blocks that were read.`);
  await db.transaction((tx) => removeBlocks(tx, reader.network, last, tip));
  return last;
}

export async function tipOf(db: Queryable, network: string): Promise<Tip | undefined> {
  const [tip] = await db.query<Tip>(
    'select height, hash from chain_block where network = $1 order by height desc limit 1',
    [network],
  );
  return tip;
}

const lockChain = (tx: Transaction, network: string): Promise<unknown> =>
  tx.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`follow:${network}`]);

/** @param parent what was read last before. @returns false if another worker was faster */
async function writeBlocks(tx: Transaction, network: string, blocks: readonly Block[], parent: string | undefined) {
  await lockChain(tx, network);
  if ((await tipOf(tx, network))?.hash !== parent) return false;
  await tx.query(
    'insert into chain_block (network, height, hash) select $1, * from unnest($2::int[], $3::text[]) as given',
    [network, blocks.map(({ height }) => height), blocks.map(({ hash }) => hash)],
  );
  await tx.query('delete from chain_block where network = $1 and height < $2', [
    network,
    blocks.at(-1)!.height - BLOCKS_KEPT,
  ]);
  for (const block of blocks) {
    const payments = block.payments.map((payment) => ({ at: block.at, ...payment }));
    await writeObserved(tx, { network, block }, payments);
  }
  return true;
}

async function removeBlocks(tx: Transaction, network: string, last: Tip, tip: Tip): Promise<void> {
  await lockChain(tx, network);
  if ((await tipOf(tx, network))?.hash !== tip.hash) return;
  await tx.query('delete from chain_block where network = $1 and height > $2', [network, last.height]);
  await tx.query(
    `with above as (
        select id from payment where network = $1 and height > $2 and block_hash is not null order by id for update)
      update payment set block_hash = null, confirmations = 0, status = case status when 'MINED' then 'SEEN' else status end
      from above where payment.id = above.id`,
    [network, last.height],
  );
}

/** Keeps how far the chain was read. */
async function noted<P extends Progress>(
  db: Database,
  { network }: ChainReader,
  head: number,
  height: number,
  progress: P,
): Promise<P> {
  await db.query(NOTE, [network, head, height, progress === 'reached']);
  return progress;
}
/** Seldom where nothing is new: that it was reached is asked for in minutes. */
const NOTE = `
  insert into chain as kept (network, head, height, reached_at) values ($1, $2, $3, case when $4 then now() end)
  on conflict (network) do update set head = excluded.head, height = excluded.height,
    reached_at = coalesce(excluded.reached_at, kept.reached_at)
  where kept.head <> excluded.head or kept.height is distinct from excluded.height
    or excluded.reached_at > coalesce(kept.reached_at, '-infinity') + interval '10 seconds'`;

/** The addresses that are watched. */
export async function depositAddressesOf(db: Database, network: string): Promise<ReadonlySet<string>> {
  const rows = await db.query<{ address: string }>(
    `select wallet_address as address from top_up where network = $1 and mode = 'CRYPTO' and wallet_address is not null
      and created_at > now() - interval '${DEPOSIT_ADDRESS_SECONDS} seconds'`,
    [network],
  );
  return new Set(rows.map(({ address }) => address));
}
