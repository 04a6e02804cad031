/** Syncs a chain: reads its new blocks (blocks.ts), and settles the top-ups that were paid in them. */
import type { Database } from '../../../entities/database/database.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import { COUNT_CONFIRMATIONS, FIND_GONE, LOCK_GONE } from '../../../entities/payments/observed-payment.ts';
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
      // Before the head, a later block may still contain the payment again.
      if (progress === 'reached') await reverseGone(db, reader.network);
      return hop('start', { afterSeconds: progress === 'behind' ? 0 : (reader.pollSeconds ?? pollSeconds) });
    },
  },
});

/** Writes announced payments. @returns the order numbers of the top-ups for which something is new */
async function readAnnounced(db: Database, reader: ChainReader, signal: AbortSignal): Promise<string[]> {
  const { network } = reader;
  const announced = (await reader.announced?.(await depositAddressesOf(db, network), signal)) ?? [];
  const seen = announced.length ? await db.transaction((tx) => writeObserved(tx, { network }, announced)) : [];
  return [...seen, ...(await orphanUnobserved(db, { network }, announced))];
}

/** Top-ups of one transaction. */
const CHUNK = 50;

/** Settles the top-ups that have something new. */
async function settleAll(db: Database, network: string, coins: readonly Coin[], announced: string[]): Promise<void> {
  const tip = await tipOf(db, network);
  const exchangeRates = await exchangeRatesOf(db, coins);
  const due = await COUNT_CONFIRMATIONS.all(db, [network, tip?.height ?? 0, announced]);
  const chunks = Array.from({ length: Math.ceil(due.length / CHUNK) }, (_, n) => due.slice(n * CHUNK, (n + 1) * CHUNK));
  await each(chunks, async (chunk) => {
    const settle = (numbers: readonly string[]) => db.transaction((tx) => settleTopUps(tx, numbers, exchangeRates));
    const numbers = chunk.map(({ orderNumber }) => orderNumber);
    // The failure of one top-up must not delay the others.
    await settle(numbers).catch(() => each(numbers, (number) => settle([number])));
  });
}

/** Transactions at once. Each takes a connection of the pool. */
const AT_ONCE = 3;

/** Works through items, some at once, and continues after a failure. @throws the first failure, in the end */
async function each<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const faults: unknown[] = [];
  const rest = items.values();
  const one = async () => {
    for (const item of rest) await work(item).catch((fault) => faults.push(fault));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
  if (faults.length) throw faults[0];
}

async function reverseGone(db: Database, network: string): Promise<void> {
  const gone = await FIND_GONE.all(db, [network]);
  await each(gone, ({ id, accountId }) =>
    db.transaction(async (tx) => {
      await lockAccount(tx, accountId);
      const payment = await LOCK_GONE.first(tx, [id]);
      if (payment) await reversePayment(tx, payment);
    }),
  );
}
