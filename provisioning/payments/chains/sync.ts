/**
 * Syncs a chain: looks at it (look.ts), and settles the top-ups that were paid. Credited payments are reversed and restored,
 * as the chain removes and mines them. A top-up or payment that cannot be settled delays no other one.
 */
import type { Database } from '../../../entities/database/database.ts';
import { OPERATOR_ACCOUNT, SYSTEM } from '../../../entities/history/audit.ts';
import { record } from '../../../entities/history/record.ts';
import { KEEP_PROBLEM } from '../../../entities/payments/chain.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import { COUNT_CONFIRMATIONS, FIND_CHANGED, LOCK_CHANGED } from '../../../entities/payments/observed-payment.ts';
import { isInBalance } from '../../../entities/payments/payment.ts';
import { PERIODIC_LANE } from '../../tasks/schedule.ts';
import { hop, type Process } from '../../tasks/tasks.ts';
import type { ChainReader, Coin } from '../drivers/driver.ts';
import { confirmationsOf, exchangeRatesOf } from '../exchange-rates/exchange-rate.ts';
import { restorePayment, reversePayment } from '../suspense.ts';
import { settleTopUps } from '../top-ups/settle.ts';
import type { Doubt } from './blocks.ts';
import { look } from './look.ts';
import type { LostAddresses } from './lost-addresses.ts';
import { type KeptRests, problemOf, Rests } from './rests.ts';

export const chainSyncName = (network: string): string => `follow:${network}`;
const BACKOFF_SECONDS_MAX = 60;
/** So many failed looks in a row are a problem for the operator. */
const FAILED_LOOKS = 3;

interface Options {
  db: Database;
  reader: ChainReader;
  lost: Pick<LostAddresses, 'read'>;
  coins: () => readonly Coin[];
  pollSeconds: number;
}

export const chainSyncProcess = ({ db, reader, lost, coins, pollSeconds }: Options): Process => ({
  lane: PERIODIC_LANE,
  attemptsMax: Number.MAX_SAFE_INTEGER,
  backoffSeconds: (attempt) => Math.min(BACKOFF_SECONDS_MAX, pollSeconds * 2 ** attempt),
  steps: {
    start: async ({ aborted, attempts, data }) => {
      const { network } = reader;
      const given = { doubted: data.doubt as Doubt | undefined, lost: await lost.read(db), signal: aborted };
      const found = await look(db, reader, given).catch(async (fault: Error) => {
        aborted.throwIfAborted();
        if (attempts >= FAILED_LOOKS) await keepProblem(db, network, fault.message);
        throw fault;
      });
      const { state, height, doubt = null, changed, problem: known, stopped, unread } = found;
      const unreadLooks = unread === undefined ? 0 : 1 + ((data.unreadLooks as number | undefined) ?? 0);
      const before = data.rests as KeptRests | undefined;
      const rests = new Rests(before);
      if (state !== 'waiting') {
        const synced = { db, network, height, coins: coins(), rests };
        // Before the head, a later block may still contain a removed payment again.
        const followed = state === 'reached' ? await followCredited(synced) : [];
        await settleAll(synced, [...followed, ...changed]);
      }
      const kept = state === 'waiting' ? (before ?? {}) : rests.kept;
      const problem = stopped ?? (unreadLooks >= FAILED_LOOKS ? unread! : problemOf(kept));
      if (problem !== known) await keepProblem(db, network, problem);
      const afterSeconds = state === 'behind' ? 0 : (reader.pollSeconds ?? pollSeconds);
      return hop('start', { afterSeconds, data: { doubt, rests: kept, unreadLooks } });
    },
  },
});

/** Top-ups of one transaction. */
const CHUNK = 50;

/** Keeps what is wrong with the chain. The operator gets one event while something is. */
const keepProblem = (db: Database, network: string, problem: string | null): Promise<void> =>
  db.transaction(async (tx) => {
    const kept = await KEEP_PROBLEM.first(tx, [network, problem]);
    if (!kept?.isNew) return;
    const data = { warning: problem };
    await record(tx, OPERATOR_ACCOUNT, network, { type: 'gateway.warned', actor: SYSTEM, data });
  });

/** A chain after a look at it. */
interface Synced {
  db: Database;
  network: string;
  /** The height of the last block that the worker has read. */
  height: number;
  coins: readonly Coin[];
  /** The failures of the look before, and of this one. */
  rests: Rests;
}

/** Settles the top-ups that have something new. @param known some of them */
async function settleAll({ db, network, height, coins, rests }: Synced, known: string[]): Promise<void> {
  const exchangeRates = await exchangeRatesOf(db, coins);
  const found = await COUNT_CONFIRMATIONS.all(db, [network, height, known, confirmationsOf(exchangeRates)]);
  const due = found.map(({ orderNumber }) => orderNumber).filter((number) => rests.isReady(number));
  const sound = due.filter((number) => !rests.has(number));
  const chunks = Array.from({ length: Math.ceil(sound.length / CHUNK) }, (_, n) =>
    sound.slice(n * CHUNK, (n + 1) * CHUNK),
  );
  const settle = async (numbers: readonly string[]) => {
    const once = () => db.transaction((tx) => settleTopUps(tx, numbers, exchangeRates));
    while ((await once()).isPartial);
  };
  const alone = (number: string) =>
    settle([number]).catch((fault: Error) => rests.fail(number, `${number} cannot be settled: ${fault.message}`));
  await each(chunks, (chunk) => settle(chunk).catch(() => each(chunk, alone)));
  await each(
    due.filter((number) => rests.has(number)),
    alone,
  );
}

/** Transactions at once. Each takes a connection of the pool. */
const AT_ONCE = 3;

/** Works through items, some at once. */
async function each<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const rest = items.values();
  const one = async () => {
    for (const item of rest) await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
}

/**
 * Reverses credited payments that the chain has removed, and credits them again once it has mined them again.
 * @returns the order numbers of the top-ups that show other payments now
 */
async function followCredited({ db, network, height, coins, rests }: Synced): Promise<string[]> {
  const required = coins.filter((coin) => coin.network === network).map((coin) => coin.confirmationsRequired);
  const condition = [network, height + 1 - Math.max(1, ...required)];
  const followed = new Set<string>();
  const changed = await FIND_CHANGED.all(db, condition);
  const due = changed.filter(({ id }) => rests.isReady(id));
  await each(due, async ({ id, accountId }) => {
    const follow = db.transaction(async (tx) => {
      await lockAccount(tx, accountId);
      const payment = await LOCK_CHANGED.first(tx, [...condition, id]);
      if (!payment) return;
      await (isInBalance(payment) ? reversePayment(tx, payment) : restorePayment(tx, payment));
      if (payment.orderNumber) followed.add(payment.orderNumber);
    });
    await follow.catch((fault: Error) => rests.fail(id, `${id} cannot be reversed or restored: ${fault.message}`));
  });
  return [...followed];
}
