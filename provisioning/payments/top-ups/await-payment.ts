/**
 * Watches one top-up: it expires, and a driver without chains is asked for its payments. The worker watches an address for
 * a month, so that late payments are credited, too.
 */
import type { Database } from '../../../entities/database/database.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { OPERATOR_ACCOUNT, SYSTEM } from '../../../entities/history/audit.ts';
import { record } from '../../../entities/history/record.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import { FINISH_REPORTED } from '../../../entities/payments/observed-payment.ts';
import { HAS_UNFINAL_PAYMENT, LOCK_PAYMENTS } from '../../../entities/payments/payment.ts';
import { DEPOSIT_ADDRESS_SECONDS, READ_TOP_UP, type TopUp } from '../../../entities/payments/top-up.ts';
import { PAYMENT_LANE } from '../../../entities/tasks/lane.ts';
import { done, type LeasedTask, nap, type Outcome, type Process } from '../../tasks/tasks.ts';
import { dropUnobserved, restoreReported, tellUnreported, writeObserved } from '../chains/observed-payments.ts';
import type { ObservedPayment, PaymentDriver } from '../drivers/driver.ts';
import { exchangeRatesOf } from '../exchange-rates/exchange-rate.ts';
import { settleTopUps } from './settle.ts';

/** The least pause between polls once the invoice is over. */
const LATE_POLL_SECONDS = 600;
/** The longest one. */
const LATE_POLL_SECONDS_MAX = 24 * 3600;
/** The longest pause while a payment waits for its confirmations. Its payer may have locked it. */
const CONFIRMING_POLL_SECONDS_MAX = 3600;
/** The pause for a payment that is not final after a month: its payer may have locked it. */
const SLOW_POLL_SECONDS = 6 * 3600;

/** The longest pause after a failure. */
const FAILED_PAUSE_SECONDS = 300;

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

/** Failures to settle a top-up, one after the other, that are a problem for the operator. */
const FAILED_SETTLEMENTS = 3;

/** A top-up, the driver of its coin, and the payments that the driver reports. */
interface Watched {
  topUp: TopUp;
  driver: PaymentDriver;
  /** Undefined: the worker reads the chain of the driver. */
  payments: ObservedPayment[] | undefined;
}

export function topUpProcess({ db, drivers, pollSeconds }: Options): Process {
  const watch = async ({ subject, aborted, data }: LeasedTask): Promise<Outcome> => {
    const before = await READ_TOP_UP.first(db, [subject]);
    if (!before) return done();
    const driver = driverOf(drivers, before.crypto);
    // The simulation pays every invoice once, but no cancelled one.
    if (driver.simulated && (before.status === 'CANCELLED' || before.status === 'CONFIRMED')) return done();
    if (!driver.observe && before.isUnread) return nap(pollSeconds);
    const rejected: string[] = [];
    const payments = await driver.observe?.({ ...before, coin: before.crypto }, aborted, (one) => rejected.push(one));
    const settled = await settleWatched(db, drivers, { topUp: before, driver, payments }).catch(
      (fault: Error) => fault,
    );
    if (settled instanceof Error) {
      aborted.throwIfAborted();
      const failures = Number(data.failures ?? 0) + 1;
      const pause = Math.min(FAILED_PAUSE_SECONDS, pollSeconds * 2 ** failures);
      if (failures < FAILED_SETTLEMENTS) return nap(pause, { data: { failures } });
      const told = tellProblem(before, data.problem, `${subject} cannot be settled: ${settled.message}`);
      return nap(pause, { ...told, data: { ...told.data, failures } });
    }
    const { topUps, isPartial } = settled;
    if (isPartial) return nap(0);
    const outcome = next(driver, { ...before, ...topUps[0] }, pollSeconds);
    const isOver = outcome.kind === 'done' && !(driver.observe && (await hasUnfinal(db, subject)));
    if (isOver) return outcome;
    const told = tellProblem(before, data.problem, rejected[0] === undefined ? null : `${subject}: ${rejected[0]}`);
    const pause = outcome.kind === 'done' ? SLOW_POLL_SECONDS : outcome.afterSeconds;
    // A task of an earlier version has no party yet.
    return { ...nap(pause, { ...told, data: { ...told.data, failures: 0 } }), party: driver.name };
  };
  return {
    lane: PAYMENT_LANE,
    attemptsMax: Number.MAX_SAFE_INTEGER,
    backoffSeconds: (attempt) => Math.min(FAILED_PAUSE_SECONDS, pollSeconds * 2 ** attempt),
    steps: { watch },
  };
}

/** Writes what the driver reports, and settles the top-up. */
async function settleWatched(db: Database, drivers: readonly PaymentDriver[], { topUp, driver, payments }: Watched) {
  const { orderNumber, network, accountId, crypto, confirmationsRequired } = topUp;
  if (payments) {
    const origin = { network, orderNumber };
    await db.transaction(async (tx) => {
      await LOCK_PAYMENTS.all(tx, [orderNumber]);
      await writeObserved(tx, origin, payments);
      await dropUnobserved(tx, origin, payments);
      await tellUnreported(tx, origin, payments);
    });
    await restoreReported(db, origin, payments, confirmationsRequired);
  }
  const coins = drivers.flatMap((one) => one.coins());
  const { finalConfirmations } = coins.find(({ code }) => code === crypto)!;
  const exchangeRates = await exchangeRatesOf(db, coins);
  return db.transaction(async (tx) => {
    if (driver.observe) {
      // The settlement locks only some of them, before the top-up. The last statement may change others.
      await lockAccount(tx, accountId);
      await LOCK_PAYMENTS.all(tx, [orderNumber]);
    }
    const settled = await settleTopUps(tx, [orderNumber], exchangeRates);
    if (driver.observe)
      await FINISH_REPORTED.all(tx, [network, orderNumber, finalConfirmations ?? confirmationsRequired]);
    return settled;
  });
}

/** Keeps the problem of a top-up in its task, for the warning of the gateway. The operator gets one event while it lasts. */
const tellProblem = ({ network }: TopUp, known: unknown, problem: string | null) => ({
  data: { problem },
  ...(problem !== null &&
    !known && {
      commit: (tx: Transaction) =>
        record(tx, OPERATOR_ACCOUNT, network, {
          ...{ type: 'gateway.warned', actor: SYSTEM, data: { warning: problem } },
        }),
    }),
});

async function hasUnfinal(db: Database, orderNumber: string): Promise<boolean> {
  const payment = await HAS_UNFINAL_PAYMENT.first(db, [orderNumber]);
  return payment!.unfinal;
}

/** Where the worker syncs the chain, this task only lets the top-up expire. */
function next(driver: PaymentDriver, topUp: TopUp & { readAt: Date }, pollSeconds: number): Outcome {
  const { status, createdAt, expiresAt, readAt } = topUp;
  const ageSeconds = (readAt.getTime() - createdAt.getTime()) / 1000;
  const overSeconds = (readAt.getTime() - expiresAt!.getTime()) / 1000;
  const restSeconds = Math.max(0, -overSeconds);
  if (ageSeconds > DEPOSIT_ADDRESS_SECONDS || (driver.simulated && status === 'CONFIRMED')) return done();
  if (!driver.observe) return restSeconds > 0 ? nap(restSeconds) : done();
  if (status === 'CONFIRMING') {
    const pauseSeconds = Math.max(pollSeconds, ageSeconds / 20, overSeconds / 24);
    return nap(Math.min(pauseSeconds, CONFIRMING_POLL_SECONDS_MAX));
  }
  if (status === 'PENDING') return nap(Math.min(Math.max(pollSeconds, ageSeconds / 20), restSeconds));
  return nap(Math.min(LATE_POLL_SECONDS_MAX, Math.max(LATE_POLL_SECONDS, ageSeconds / 8)));
}
