/**
 * Follows a chain block by block, and by its hashes notices when blocks were taken back. Every block is written together with
 * what came in it, under a lock of its chain, so two workers cannot write different histories; what was written is settled
 * afterwards, top-up by top-up.
 */
import type { Database, Transaction } from '../../entities/database.ts';
import { columnsOf } from '../../entities/entity.ts';
import { Payment } from '../../entities/payment.ts';
import { PERIODIC_LANE } from '../schedule.ts';
import { hop, type Process } from '../tasks.ts';
import { reversePayment } from './credit.ts';
import type { Block, ChainReader, Coin } from './drivers/driver.ts';
import { worthsOf } from './rates/worth.ts';
import { orphanUnsighted, recordSightings } from './record.ts';
import { settleTopUp } from './settle.ts';
import { WATCH_SECONDS } from './watch-top-up.ts';

export const followProcessName = (network: string): string => `follow:${network}`;
/** Blocks of a step: the lease is renewed meanwhile, and what is there is credited before the next ones are read. */
const BLOCKS_MAX = 100;
/** Blocks that are remembered: a reorganisation that is deeper is noticed at the oldest one, and goes no further back. */
const BLOCKS_KEPT = 1_000;
const BACKOFF_SECONDS_MAX = 60;

interface Options {
  db: Database;
  reader: ChainReader;
  coins: () => readonly Coin[];
  pollSeconds: number;
}

type Tip = { height: number; hash: string };

export const followProcess = ({ db, reader, coins, pollSeconds }: Options): Process => ({
  lane: PERIODIC_LANE,
  attemptsMax: Number.MAX_SAFE_INTEGER,
  backoffSeconds: (attempt) => Math.min(BACKOFF_SECONDS_MAX, pollSeconds * 2 ** attempt),
  steps: {
    start: async ({ aborted }) => {
      const behind = await readBlocks(db, reader, aborted);
      const announced = behind ? [] : await readAnnounced(db, reader, aborted);
      await settleAll(db, reader.network, coins(), announced);
      // Only at the head of the chain it is sure that a payment was not mined again elsewhere.
      if (!behind) await reverseGone(db, reader.network);
      return hop('start', { afterSeconds: behind ? 0 : pollSeconds });
    },
  },
});

/** @returns whether there are more */
async function readBlocks(db: Database, reader: ChainReader, signal: AbortSignal): Promise<boolean> {
  const head = await reader.head(signal);
  const addresses = await addressesOf(db, reader.network);
  let tip = await lastOnChain(db, reader, head.height, signal);
  for (let read = 0; !tip || tip.height < head.height; read++) {
    if (read === BLOCKS_MAX) return true;
    // Whatever came before the first start is not ours.
    const block = await reader.block(tip ? tip.height + 1 : head.height, addresses, signal);
    if (tip && block.parent !== tip.hash) return true;
    const before = tip?.hash;
    if (!(await db.transaction((tx) => writeBlock(tx, reader.network, block, before)))) return true;
    tip = block;
  }
  return false;
}

/** The last of our blocks that is on the chain still; those above it are taken back. */
async function lastOnChain(db: Database, reader: ChainReader, height: number, signal: AbortSignal) {
  for (;;) {
    const tip = await tipOf(db, reader.network);
    if (!tip || (tip.height <= height && (await reader.hash(tip.height, signal)) === tip.hash)) return tip;
    await db.transaction((tx) => takeBack(tx, reader.network, tip));
  }
}

async function tipOf(db: Database | Transaction, network: string): Promise<Tip | undefined> {
  const [tip] = await db.query<Tip>(
    'select height, hash from chain_block where network = $1 order by height desc limit 1',
    [network],
  );
  return tip;
}

const lockChain = (tx: Transaction, network: string): Promise<unknown> =>
  tx.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [followProcessName(network)]);

/** @returns false if another worker was faster */
async function writeBlock(tx: Transaction, network: string, block: Block, parent: string | undefined) {
  await lockChain(tx, network);
  if ((await tipOf(tx, network))?.hash !== parent) return false;
  const { height, hash, at } = block;
  await tx.query('insert into chain_block (network, height, hash) values ($1, $2, $3)', [network, height, hash]);
  await tx.query('delete from chain_block where network = $1 and height < $2', [network, height - BLOCKS_KEPT]);
  const sightings = block.sightings.map((sighting) => ({ at, ...sighting }));
  await recordSightings(tx, { network, block }, sightings);
  return true;
}

async function takeBack(tx: Transaction, network: string, { height, hash }: Tip): Promise<void> {
  await lockChain(tx, network);
  const gone = await tx.query(
    'delete from chain_block where network = $1 and height = $2 and hash = $3 returning height',
    [network, height, hash],
  );
  if (!gone.length) return;
  await tx.query(
    `update payment set block_hash = null, confirmations = 0, status = case status when 'MINED' then 'SEEN' else status end
      where network = $1 and height = $2 and block_hash is not null`,
    [network, height],
  );
}

/** @returns the top-ups for which something is new */
async function readAnnounced(db: Database, reader: ChainReader, signal: AbortSignal): Promise<string[]> {
  const { network } = reader;
  const announced = (await reader.announced?.(await addressesOf(db, network), signal)) ?? [];
  const seen = await recordSightings(db, { network }, announced);
  return [...seen, ...(await orphanUnsighted(db, { network }, announced))];
}

async function addressesOf(db: Database, network: string): Promise<ReadonlySet<string>> {
  const rows = await db.query<{ address: string }>(
    `select wallet_address as address from top_up where network = $1 and mode = 'CRYPTO' and wallet_address is not null
      and created_at > now() - interval '${WATCH_SECONDS} seconds'`,
    [network],
  );
  return new Set(rows.map(({ address }) => address));
}

/** Settles what is due. */
async function settleAll(db: Database, network: string, coins: readonly Coin[], announced: string[]): Promise<void> {
  const tip = await tipOf(db, network);
  const worths = await worthsOf(db, coins);
  const due = await db.query<{ orderNumber: string }>(DUE, [network, tip?.height ?? 0, announced]);
  await each(due, ({ orderNumber }) => db.transaction((tx) => settleTopUp(tx, orderNumber, worths)));
}

/** One that fails does not keep the others from it. @throws what the first one threw */
async function each<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const faults: unknown[] = [];
  for (const item of items) await work(item).catch((fault) => faults.push(fault));
  if (faults.length) throw faults[0];
}

async function reverseGone(db: Database, network: string): Promise<void> {
  const gone = await db.query<{ id: string }>(`select id from payment where ${GONE} and network = $1`, [network]);
  await each(gone, ({ id }) => db.transaction((tx) => reverse(tx, id)));
}

async function reverse(tx: Transaction, id: string): Promise<void> {
  const [payment] = await tx.query<Payment>(
    `select ${columnsOf(Payment)} from payment where id = $1 and ${GONE} for update`,
    [id],
  );
  if (payment) await reversePayment(tx, payment);
}
const GONE = `status = 'CREDITED' and height is not null and block_hash is null`;

/** Counts confirmations, and finds the top-ups that have something new, or had when a worker died. */
const DUE = `
  with counted as (
    update payment set confirmations = $2 - height + 1
    where network = $1 and status in ('SEEN', 'MINED', 'REVERSED') and block_hash is not null and confirmations <> $2 - height + 1
    returning order_number)
  select order_number as "orderNumber" from (
    select order_number from counted
    union select unnest($3::text[])
    union select payment.order_number from payment join top_up using (order_number)
      where payment.network = $1 and payment.status in ('SEEN', 'MINED')
        and (top_up.status not in ('CONFIRMING', 'CONFIRMED') or payment.confirmations >= top_up.confirmations_required)
    union select order_number from payment where network = $1 and status = 'REVERSED' and block_hash is not null
    union select order_number from top_up
      where network = $1 and status = 'CONFIRMING' and mode = 'CRYPTO' and expires_at <= now()) as due`;
