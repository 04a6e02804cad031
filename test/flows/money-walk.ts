/**
 * A walk through a hosting company: payments, cancellations, orders, failures, renewals, refunds, reorganisations and
 * crashes, one after the other as chance has it, over the real database.
 */
import fc from 'fast-check';
import type { Database, Transaction } from '../../entities/database.ts';
import { ApiError } from '../../entities/errors.ts';
import type { TopUp } from '../../entities/top-up.ts';
import { followProcessName } from '../../provisioning/payments/follow.ts';
import { RENEWAL_PROCESS } from '../../provisioning/servers/renew.ts';
import { cancelTopUp, createTopUp } from '../../resolvers/billing.ts';
import type { Context } from '../../resolvers/context.ts';
import { deleteServer } from '../../resolvers/servers/delete.ts';
import { orderServer } from '../../resolvers/servers/order.ts';
import { updateServer } from '../../resolvers/servers/update.ts';
import type { Chain } from '../provisioning/chain.ts';
import type { Shop } from '../provisioning/shop.ts';
import type { RefusingDriver } from './refusing-driver.ts';

/** Where a transaction breaks off: before it, before its commit, or after it, when nobody hears that it was committed. */
const CRASHES = ['before', 'inside', 'after'] as const;

const of = <K extends string>(kind: K) => fc.record({ kind: fc.constant(kind), who: fc.nat(2), which: fc.nat(1_000) });
/** The more often a kind stands here, the more often it is done. */
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
  { weight: 8, arbitrary: of('work') },
);
function base<K extends string>(kind: K) {
  return { kind: fc.constant(kind), who: fc.nat(2), which: fc.nat(1_000) };
}
export type Step = typeof STEP extends fc.Arbitrary<infer T> ? T : never;

class Crash extends Error {}

/** A database of which transactions break off when they are told to. */
export function crashing(db: Database) {
  let next: (typeof CRASHES)[number] | undefined;
  const transaction = db.transaction.bind(db);
  db.transaction = async <T>(work: (tx: Transaction) => Promise<T>): Promise<T> => {
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
  };
}

interface Town {
  shop: Shop;
  chain: Chain;
  driver: RefusingDriver;
  /** One for each customer. */
  contexts: Context[];
  crashes: ReturnType<typeof crashing>;
}

/** Does one step. What is refused with an error of the catalogue, or crashes, is over. */
export async function take(town: Town, step: Step): Promise<void> {
  try {
    await act(town, step);
  } catch (error) {
    if (!(error instanceof ApiError || error instanceof Crash)) throw error;
  }
}

async function act(town: Town, step: Step): Promise<unknown> {
  const { shop, chain, driver, contexts, crashes } = town;
  const context = contexts[step.who]!;
  const pick = <T>(rows: T[]): T | undefined => rows[step.which % Math.max(1, rows.length)];
  const topUp = async () => pick(await latest<TopUp>(shop.db, 'top_up', context));
  const server = async () => pick(await latest<{ orderNumber: string }>(shop.db, 'server', context));
  switch (step.kind) {
    case 'topUp':
      return createTopUp(context, { amountUsd: BigInt(step.usd) * 1_000_000n, crypto: 'TST' });
    case 'pay': {
      const one = await topUp();
      // A dollar is a million units: a hundredth of a coin of 100 dollars, which has eight decimals.
      return one && chain.pay(one.walletAddress!, (one.amountMicros * BigInt(step.percent)) / 100n);
    }
    case 'payOther': {
      const one = await topUp();
      return one && chain.pay(one.walletAddress!, 500_000_000n, { coin: 'OTHER' });
    }
    case 'mine':
      return chain.mine(step.count);
    case 'reorganise':
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
      return orderServer(context, { serviceCode: 'vps-1', region: 'ams', os: 'debian-13', autoRenew: true });
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
    case 'work':
      return work(shop);
  }
}

const latest = <T>(db: Database, table: 'top_up' | 'server', { viewer }: Context): Promise<T[]> =>
  db.query<T>(
    `select order_number as "orderNumber"${table === 'top_up' ? ', wallet_address as "walletAddress", amount_micros as "amountMicros"' : ''}
      from ${table} where account_id = $1 order by id desc limit 8`,
    [viewer!.accountId],
  );

/** All that is due, and all that would be when time had passed, is done. */
export async function work({ db, provisioning }: Shop): Promise<void> {
  const worker = provisioning.newWorker();
  await db.query(`update task set run_at = now(), leased_by = null where subject = any($1) or lane <> 'periodic'`, [
    [followProcessName('testnet'), RENEWAL_PROCESS].map((name) => `cron:${name}`),
  ]);
  for (const lane of ['periodic', 'payments', 'servers']) await worker.drain(lane).catch(() => {});
}
