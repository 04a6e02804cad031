/**
 * Watches one top-up: it expires, and a driver without chains is asked for its payments. The worker watches an address for
 * a month, so that late payments are credited, too.
 */
import type { Database } from '../../../entities/database/database.ts';
import type { Queryable } from '../../../entities/database/transaction.ts';
import { HAS_OPEN_PAYMENT, LOCK_PAYMENTS } from '../../../entities/payments/payment.ts';
import {
  DEPOSIT_ADDRESS_SECONDS,
  IS_KNOWN_ADDRESS,
  READ_TOP_UP,
  type TopUp,
} from '../../../entities/payments/top-up.ts';
import { done, type LeasedTask, nap, type Outcome, type Process } from '../../tasks/tasks.ts';
import { orphanUnobserved, tellUnreported, writeObserved } from '../chains/observed-payments.ts';
import type { PaymentDriver, PaymentTarget } from '../drivers/driver.ts';
import { exchangeRatesOf } from '../exchange-rates/exchange-rate.ts';
import { settleTopUp } from './settle.ts';

export const TOP_UP_PROCESS = 'top-up';
export const TOP_UP_LANE = 'payments';
/** The least pause between polls once the invoice is over. */
const LATE_POLL_SECONDS = 600;
/** The pause for a payment that is still unconfirmed after a month: its payer may have locked it. */
const SLOW_POLL_SECONDS = 6 * 3600;

interface Options {
  db: Database;
  drivers: readonly PaymentDriver[];
  pollSeconds: number;
}

/** @throws if no driver has the coin, or no driver has it any more */
export function driverOf(drivers: readonly PaymentDriver[], coin: string): PaymentDriver {
  const driver = drivers.find((one) => one.coins().some(({ code }) => code === coin));
  if (!driver) throw new Error(`No payment driver has ${coin}.`);
  return driver;
}

/** Whether a top-up already has the address. */
export async function isKnownAddress(
  db: Queryable,
  driver: PaymentDriver,
  code: string,
  { walletAddress }: PaymentTarget,
): Promise<boolean> {
  const { network } = driver.coins().find((coin) => coin.code === code)!;
  const address = await IS_KNOWN_ADDRESS.first(db, [network, walletAddress]);
  return address!.known;
}

export function topUpProcess({ db, drivers, pollSeconds }: Options): Process {
  const settle = async (orderNumber: string) => {
    const exchangeRates = await exchangeRatesOf(
      db,
      drivers.flatMap((one) => one.coins()),
    );
    return db.transaction((tx) => settleTopUp(tx, orderNumber, exchangeRates));
  };
  const watch = async ({ subject, aborted }: LeasedTask): Promise<Outcome> => {
    const before = await READ_TOP_UP.first(db, [subject]);
    if (!before) return done();
    const driver = driverOf(drivers, before.crypto);
    // The simulation pays every invoice once, but no cancelled one.
    if (driver.simulated && (before.status === 'CANCELLED' || before.status === 'CONFIRMED')) return done();
    if (driver.observe) {
      const payments = await driver.observe({ ...before, coin: before.crypto }, aborted);
      const origin = { network: before.network, orderNumber: subject };
      await db.transaction(async (tx) => {
        await LOCK_PAYMENTS.all(tx, [[subject]]);
        await writeObserved(tx, origin, payments);
        await orphanUnobserved(tx, origin, payments);
        await tellUnreported(tx, origin, payments);
      });
    }
    const outcome = next(driver, { ...before, ...(await settle(subject)) }, pollSeconds);
    return outcome.kind === 'done' && driver.observe && (await hasOpen(db, subject)) ? nap(SLOW_POLL_SECONDS) : outcome;
  };
  return {
    lane: TOP_UP_LANE,
    attemptsMax: Number.MAX_SAFE_INTEGER,
    backoffSeconds: (attempt) => Math.min(300, pollSeconds * 2 ** attempt),
    steps: { watch },
  };
}

async function hasOpen(db: Database, orderNumber: string): Promise<boolean> {
  const payment = await HAS_OPEN_PAYMENT.first(db, [orderNumber]);
  return payment!.open;
}

/** Where the worker syncs the chain, this task only lets the top-up expire. */
function next(driver: PaymentDriver, topUp: TopUp & { readAt: Date }, pollSeconds: number): Outcome {
  const { status, createdAt, expiresAt, readAt } = topUp;
  const ageSeconds = (readAt.getTime() - createdAt.getTime()) / 1000;
  const restSeconds = Math.max(0, (expiresAt!.getTime() - readAt.getTime()) / 1000);
  if (ageSeconds > DEPOSIT_ADDRESS_SECONDS || (driver.simulated && status === 'CONFIRMED')) return done();
  if (!driver.observe) return restSeconds > 0 ? nap(restSeconds) : done();
  if (status === 'CONFIRMING') return nap(pollSeconds);
  if (status === 'PENDING') return nap(Math.min(pollSeconds, restSeconds));
  return nap(Math.max(LATE_POLL_SECONDS, ageSeconds / 24));
}
