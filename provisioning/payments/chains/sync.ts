/** Syncs a chain: reads what is new of it (blocks.ts), and settles what came, top-up by top-up. */
import type { Database } from '../../../entities/database/database.ts';
import { columnsOf } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import { Payment } from '../../../entities/payments/payment.ts';
import { PERIODIC_LANE } from '../../tasks/schedule.ts';
import { hop, type Process } from '../../tasks/tasks.ts';
import type { ChainReader, Coin } from '../drivers/driver.ts';
import { exchangeRatesOf } from '../exchange-rates/exchange-rate.ts';
import { reversePayment } from '../top-ups/credit.ts';
import { settleTopUps } from '../top-ups/settle.ts';
import { depositAddressesOf, readBlocks, tipOf } from './blocks.ts';
import { orphanUnobserved, writeObserved } from './observed-payments.ts';

export const chainSyncName = (network: string): string => `follow:${network}`;
const BACKOFF_SECONDS_MAX = 60;

interface Options {
  db: Database;
  reader: ChainReader;
  coins: () => readonly Coin[];
  pollSeconds: number;
}

export const chainSyncProcess = ({ db, reader, coins, pollSeconds }: Options): Process => ({
  lane: PERIODIC_LANE,
  attemptsMax: Number.MAX_SAFE_INTEGER,
  backoffSeconds: (attempt) => Math.min(BACKOFF_SECONDS_MAX, pollSeconds * 2 ** attempt),
  steps: {
    start: async ({ aborted }) => {
      const progress = await readBlocks(db, reader, aborted);
      const announced = progress === 'reached' ? await readAnnounced(db, reader, aborted) : [];
      if (progress !== 'waiting') await settleAll(db, reader.network, coins(), announced);
      // Only at the head of the chain it is sure that a payment was not mined again elsewhere.
      if (progress === 'reached') await reverseGone(db, reader.network);
      return hop('start', { afterSeconds: progress === 'behind' ? 0 : (reader.pollSeconds ?? pollSeconds) });
    },
  },
});

/** @returns the top-ups for which something is new */
async function readAnnounced(db: Database, reader: ChainReader, signal: AbortSignal): Promise<string[]> {
  const { network } = reader;
  const announced = (await reader.announced?.(await depositAddressesOf(db, network), signal)) ?? [];
  const seen = await writeObserved(db, { network }, announced);
  return [...seen, ...(await orphanUnobserved(db, { network }, announced))];
}

/** Top-ups that are settled in one transaction. */
const CHUNK = 50;

/** Settles what is due. */
async function settleAll(db: Database, network: string, coins: readonly Coin[], announced: string[]): Promise<void> {
  const tip = await tipOf(db, network);
  const exchangeRates = await exchangeRatesOf(db, coins);
  const due = await db.query<{ orderNumber: string }>(DUE, [network, tip?.height ?? 0, announced]);
  const chunks = Array.from({ length: Math.ceil(due.length / CHUNK) }, (_, n) => due.slice(n * CHUNK, (n + 1) * CHUNK));
  await each(chunks, async (chunk) => {
    const settle = (numbers: readonly string[]) => db.transaction((tx) => settleTopUps(tx, numbers, exchangeRates));
    const numbers = chunk.map(({ orderNumber }) => orderNumber);
    // One that fails must not keep those beside it from their money.
    await settle(numbers).catch(() => each(numbers, (number) => settle([number])));
  });
}

/** Each has a connection of the pool. */
const AT_ONCE = 3;

/** Some at once. One that fails does not keep the others from it. @throws what the first one threw */
async function each<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const faults: unknown[] = [];
  const rest = items.values();
  const one = async () => {
    for (const item of rest) await work(item).catch((fault) => faults.push(fault));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
  if (faults.length) throw faults[0];
}

const GONE = `status = 'CREDITED' and height is not null and block_hash is null`;

async function reverseGone(db: Database, network: string): Promise<void> {
  const gone = await db.query<Pick<Payment, 'id' | 'accountId'>>(
    `select id, account_id from payment where ${GONE} and network = $1`,
    [network],
  );
  await each(gone, (payment) => db.transaction((tx) => reverseIfGone(tx, payment)));
}

async function reverseIfGone(tx: Transaction, { id, accountId }: Pick<Payment, 'id' | 'accountId'>): Promise<void> {
  await lockAccount(tx, accountId);
  const [payment] = await tx.query<Payment>(
    `select ${columnsOf(Payment)} from payment where id = $1 and ${GONE} for update`,
    [id],
  );
  if (payment) await reversePayment(tx, payment);
}

/** Counts confirmations, and finds the top-ups that have something new, or had when a worker died. */
const DUE = `
  with uncounted as (
    select id from payment
    where network = $1 and status in ('SEEN', 'MINED', 'REVERSED', 'WRITTEN_OFF') and block_hash is not null and confirmations <> $2 - height + 1
    order by id for update),
  counted as (
    update payment set confirmations = $2 - height + 1 from uncounted where payment.id = uncounted.id
    returning order_number)
  select order_number from (
    select order_number from counted
    union select unnest($3::text[])
    union select payment.order_number from payment join top_up using (order_number)
      where payment.network = $1 and payment.status in ('SEEN', 'MINED')
        and (top_up.status not in ('CONFIRMING', 'CONFIRMED') or payment.confirmations >= top_up.confirmations_required
          -- Its block was taken back, and the top-up does not show it yet.
          or payment.confirmations < top_up.confirmations)
    union select order_number from payment where network = $1 and status in ('REVERSED', 'WRITTEN_OFF') and block_hash is not null
    union select order_number from top_up
      where network = $1 and status = 'CONFIRMING' and mode = 'CRYPTO' and expires_at <= now()) as due`;
