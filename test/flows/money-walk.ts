/**
 * A random walk through a hosting company, over the real database. It has payments, cancellations, orders, failures, renewals,
 * refunds, reorganisations and crashes.
 */
import fc from 'fast-check';
import type { Database } from '../../entities/database/database.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { newId } from '../../entities/ids.ts';
import type { TopUp } from '../../entities/payments/top-up.ts';
import { chainSyncName } from '../../provisioning/payments/chains/sync.ts';
import { RENEWAL_PROCESS } from '../../provisioning/servers/billing/renew.ts';
import { cronSubject } from '../../provisioning/tasks/schedule.ts';
import type { Context } from '../../resolvers/context.ts';
import { cancelTopUp, createTopUp } from '../../resolvers/payments/billing.ts';
import type { PaymentHeaders } from '../../resolvers/payments/x402.ts';
import { deleteServer } from '../../resolvers/servers/delete.ts';
import { orderServer } from '../../resolvers/servers/order.ts';
import { updateServer } from '../../resolvers/servers/update.ts';
import type { Chain } from '../payments/chains/chain.ts';
import type { RefusingDriver } from '../servers/drivers/refusing-driver.ts';
import type { Shop } from '../setup/shop.ts';
import { type CoinChain, MOODS, type Mood } from './coin-chain.ts';

/** The moments at which a transaction crashes: before it, before its commit, or after the commit, whose result is lost. */
const CRASHES = ['before', 'inside', 'after'] as const;

const of = <K extends string>(kind: K) => fc.record({ kind: fc.constant(kind), who: fc.nat(2), which: fc.nat(1_000) });
/** The steps with their weights. */
export const STEP = fc.oneof(
  { weight: 4, arbitrary: fc.record({ ...base('topUp'), usd: fc.integer({ min: 30, max: 400 }) }) },
  { weight: 6, arbitrary: fc.record({ ...base('pay'), percent: fc.constantFrom(100, 100, 100, 50, 37, 140, 200) }) },
  { weight: 1, arbitrary: of('payOther') },
  { weight: 6, arbitrary: fc.record({ ...base('mine'), count: fc.integer({ min: 1, max: 3 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({ ...base('reorganise'), depth: fc.integer({ min: 1, max: 4 }), lost: fc.boolean() }),
  },
  { weight: 2, arbitrary: of('cancel') },
  { weight: 2, arbitrary: of('expire') },
  { weight: 5, arbitrary: of('order') },
  { weight: 3, arbitrary: of('delete') },
  { weight: 2, arbitrary: of('resize') },
  { weight: 2, arbitrary: of('renew') },
  {
    weight: 1,
    arbitrary: fc.record({ ...base('refuse'), calls: fc.subarray(['create', 'resize', 'silent', 'stuck']) }),
  },
  { weight: 2, arbitrary: fc.record({ ...base('crash'), where: fc.constantFrom(...CRASHES) }) },
  { weight: 2, arbitrary: of('abandon') },
  {
    weight: 5,
    // Without an amount it buys a server.
    arbitrary: fc.record({ ...requested('buy'), usd: fc.oneof(fc.constant(null), fc.integer({ min: 30, max: 400 })) }),
  },
  { weight: 3, arbitrary: fc.record(requested('repeat')) },
  { weight: 1, arbitrary: of('lapse') },
  { weight: 8, arbitrary: of('work') },
);
function base<K extends string>(kind: K) {
  return { kind: fc.constant(kind), who: fc.nat(2), which: fc.nat(1_000) };
}
/** A request with a payment by x402: the mood of the chain then and later, and where the transaction crashes. */
function requested<K extends string>(kind: K) {
  const mood = fc.constantFrom('settles', 'settles', 'settles', ...MOODS);
  const later = fc.constantFrom<Mood>('settles', 'settles', 'silent', 'refuses', 'away', 'lies');
  // One in four.
  const crash = fc.nat(11).map((which) => CRASHES[which]);
  return { ...base(kind), mood, later, crash };
}
export type Step = typeof STEP extends fc.Arbitrary<infer T> ? T : never;

class Crash extends Error {}

/** Has the next transaction of a database crash when the walk says so. */
export function crashing(db: Database) {
  let next: (typeof CRASHES)[number] | undefined;
  const running = new Set<Promise<unknown>>();
  const transaction = db.transaction.bind(db);
  db.transaction = <T>(work: (tx: Transaction) => Promise<T>): Promise<T> => {
    const result = breaking(work);
    running.add(result);
    return result.finally(() => running.delete(result));
  };
  const breaking = async <T>(work: (tx: Transaction) => Promise<T>): Promise<T> => {
    const now = next;
    next = undefined;
    if (now === 'before') throw new Crash(now);
    const result = await transaction(async (tx) => {
      const done = await work(tx);
      if (now === 'inside') throw new Crash(now);
      return done;
    });
    if (now === 'after') throw new Crash(now);
    return result;
  };
  return {
    next: (where: (typeof CRASHES)[number]) => {
      next = where;
    },
    calm: () => {
      next = undefined;
    },
    /** Waits for all transactions, even those of requests that died. */
    quiet: () => Promise.allSettled(running),
  };
}

interface Town {
  shop: Shop;
  chain: Chain;
  coins: CoinChain;
  driver: RefusingDriver;
  /** The context of each customer. */
  contexts: Context[];
  /** The purchases of each customer by x402. */
  purchases: Purchase[][];
  crashes: ReturnType<typeof crashing>;
}

/** A purchase by x402. A repeated payment is the same purchase. */
interface Purchase {
  send: (context: Context, headers: PaymentHeaders) => Promise<unknown>;
  signature: string;
}

/** Takes one step. The step ends with its refusal or its crash. */
export async function take(town: Town, step: Step): Promise<void> {
  try {
    await act(town, step);
  } catch (error) {
    if (!(error instanceof ApiError || error instanceof Crash)) throw error;
  }
  await town.crashes.quiet();
}

async function act(town: Town, step: Step): Promise<unknown> {
  const { shop, chain, coins, driver, contexts, crashes } = town;
  const context = contexts[step.who]!;
  const pick = <T>(rows: T[]): T | undefined => rows[step.which % Math.max(1, rows.length)];
  const topUp = async () => pick(await latest<TopUp>(shop.db, 'top_up', context));
  const invoice = async () => pick((await latest<TopUp>(shop.db, 'top_up', context)).filter(isInvoice));
  const purchases = town.purchases[step.who]!;
  const server = async () => pick(await latest<{ orderNumber: string }>(shop.db, 'server', context));
  switch (step.kind) {
    case 'topUp':
      return createTopUp(context, { amountUsd: BigInt(step.usd) * 1_000_000n, crypto: 'TST' });
    case 'pay': {
      const one = await invoice();
      // The coin has eight decimals and costs 100 dollars, so a micro-USD is one unit.
      return one && chain.pay(one.walletAddress!, (one.amountMicros * BigInt(step.percent)) / 100n);
    }
    case 'payOther': {
      const one = await invoice();
      return one && chain.pay(one.walletAddress!, 500_000_000n, { coin: 'OTHER' });
    }
    case 'mine':
      return chain.mine(step.count);
    case 'reorganise':
      coins.reorganise(step.depth);
      return chain.reorganise(Math.min(step.depth, chain.blocks.length - 1), { lost: step.lost });
    case 'cancel': {
      const one = await topUp();
      return one && cancelTopUp(context, one.orderNumber);
    }
    case 'expire': {
      const one = await topUp();
      return one && shop.db.query(`update top_up set expires_at = now() where order_number = $1`, [one.orderNumber]);
    }
    case 'order':
      return orderServer(context, ORDER);
    case 'delete': {
      const one = await server();
      return one && deleteServer(context, one.orderNumber);
    }
    case 'resize': {
      const one = await server();
      return one && updateServer(context, one.orderNumber, { serviceCode: 'vps-2' });
    }
    case 'renew':
      return shop.db.query(
        `update server set paid_until = now() - interval '1 second' where account_id = $1 and status in ('RUNNING', 'STOPPED')`,
        [context.viewer!.accountId],
      );
    case 'refuse':
      driver.refused = step.calls;
      return undefined;
    case 'crash':
      return crashes.next(step.where);
    case 'abandon': {
      const worker = shop.provisioning.newWorker();
      return worker.lease(pick(['payments', 'periodic', 'servers'])!);
    }
    case 'buy': {
      const { usd } = step;
      const send = (as: Context, headers: PaymentHeaders): Promise<unknown> =>
        usd === null
          ? orderServer(as, ORDER, headers)
          : createTopUp(as, { amountUsd: BigInt(usd) * 1_000_000n }, headers);
      const asked = await send(context, { mode: 'X402' }).catch((error: ApiError) => error);
      const signature = coins.sign(asked as ApiError, `0x${String(step.who).padStart(40, '0')}`);
      purchases.unshift({ send, signature });
      return request(town, step, purchases[0]!);
    }
    case 'repeat': {
      const one = pick(purchases.slice(0, 8));
      return one && request(town, step, one);
    }
    case 'lapse':
      return coins.lapse();
    case 'work':
      if (step.which % 3 === 0) coins.secure();
      return work(shop, step.which % 5 === 0);
  }
}
const ORDER = { serviceCode: 'vps-1', region: 'ams', os: 'debian-13', autoRenew: true };

const isInvoice = ({ mode }: TopUp): boolean => mode === 'CRYPTO';

/** Sends a payment by x402. The request may die, and it does not wait for another request with the same payment. */
async function request(
  { coins, contexts, crashes }: Town,
  { who, mood, later, crash }: Extract<Step, { kind: 'buy' | 'repeat' }>,
  { send, signature }: Purchase,
): Promise<void> {
  coins.mood = mood;
  if (crash) crashes.next(crash);
  const context = { ...contexts[who]!, requestId: newId('req'), signal: AbortSignal.abort() };
  try {
    await Promise.race([send(context, { signature }), coins.death()]);
  } finally {
    coins.mood = later;
  }
}

const latest = <T>(db: Database, table: 'top_up' | 'server', { viewer }: Context): Promise<T[]> =>
  db.query<T>(
    `select order_number${table === 'top_up' ? ', mode, wallet_address, amount_micros' : ''}
      from ${table} where account_id = $1 order by id desc limit 8`,
    [viewer!.accountId],
  );

/**
 * Runs all due tasks, and those that would be due later.
 * @param late half an hour has passed: the quotes of closed top-ups expire, and all tasks that watch run once more
 */
export async function work({ db, provisioning }: Shop, late = true): Promise<void> {
  const worker = provisioning.newWorker();
  if (late)
    await db.query(
      `update top_up set expires_at = now() where expires_at > now() and status not in ('PENDING', 'CONFIRMING')`,
    );
  await db.query(
    `update x402_payment set lease_until = now(), created_at = created_at - interval '1 minute' where status = 'SETTLING'`,
  );
  await db.query(WAKE, [[chainSyncName('testnet'), RENEWAL_PROCESS].map(cronSubject), late]);
  for (const lane of ['periodic', 'payments', 'servers']) await worker.drain(lane).catch(() => {});
}
/** Wakes a top-up only after its expiry, because the chain sync observes its payments before. */
const WAKE = `
  update task set run_at = now(), leased_by = null
  where subject = any($1) or (lane <> 'periodic'
    and ($2 or not exists (select from top_up where order_number = subject and expires_at > now())))`;
