/**
 * Looks after one top-up: it expires, and where its driver has to be asked, it is asked what has come. An address is looked
 * at for a month, for no coin is to be lost.
 */
import type { Database } from '../../../entities/database/database.ts';
import { columnsOf } from '../../../entities/database/table.ts';
import type { Queryable } from '../../../entities/database/transaction.ts';
import { lockPayments } from '../../../entities/payments/payment.ts';
import { TopUp } from '../../../entities/payments/top-up.ts';
import { done, type LeasedTask, nap, type Outcome, type Process } from '../../tasks/tasks.ts';
import { orphanUnobserved, writeObserved } from '../chains/observed-payments.ts';
import { tellUnreported } from '../chains/unreported.ts';
import type { PaymentDriver, PaymentTarget } from '../drivers/driver.ts';
import { exchangeRatesOf } from '../exchange-rates/exchange-rate.ts';
import { settleTopUp } from './settle.ts';

export const TOP_UP_PROCESS = 'top-up';
export const TOP_UP_LANE = 'payments';
/** How long an address is looked at. */
export const DEPOSIT_ADDRESS_SECONDS = 31 * 24 * 3600;
/** How often, once the invoice is over. */
const LATE_POLL_SECONDS = 600;
/** How often for a payment that takes longer to confirm than an address is looked at: its payer may have locked it. */
const SLOW_POLL_SECONDS = 6 * 3600;

interface Options {
  db: Database;
  drivers: readonly PaymentDriver[];
  pollSeconds: number;
}

/** @throws if none has such a coin, or none any more */
export function driverOf(drivers: readonly PaymentDriver[], coin: string): PaymentDriver {
  const driver = drivers.find((one) => one.coins().some(({ code }) => code === coin));
  if (!driver) throw new Error(`No payment driver has ${coin}.`);
  return driver;
}

/** Whether an address is that of a top-up already. */
export async function isKnownAddress(
  db: Queryable,
  driver: PaymentDriver,
  code: string,
  { walletAddress }: PaymentTarget,
): Promise<boolean> {
  const { network } = driver.coins().find((coin) => coin.code === code)!;
  const known = await db.query('select 1 from top_up where network = $1 and wallet_address = $2 limit 1', [
    network,
    walletAddress,
  ]);
  return known.length > 0;
}

export function topUpProcess({ db, drivers, pollSeconds }: Options): Process {
  const read = async (orderNumber: string) => {
    const [topUp] = await db.query<TopUp>(`select ${columnsOf(TopUp)} from top_up where order_number = $1`, [
      orderNumber,
    ]);
    return topUp;
  };
  const settle = async (orderNumber: string) => {
    const exchangeRates = await exchangeRatesOf(
      db,
      drivers.flatMap((one) => one.coins()),
    );
    return db.transaction((tx) => settleTopUp(tx, orderNumber, exchangeRates));
  };
  const watch = async ({ subject, aborted }: LeasedTask): Promise<Outcome> => {
    const before = await read(subject);
    if (!before) return done();
    const driver = driverOf(drivers, before.crypto);
    // A simulation pays every invoice once, by itself; who cancels one would not have paid.
    if (driver.simulated && (before.status === 'CANCELLED' || before.status === 'CONFIRMED')) return done();
    if (driver.observe) {
      const payments = await driver.observe({ ...before, coin: before.crypto }, aborted);
      const origin = { network: before.network, orderNumber: subject };
      await db.transaction(async (tx) => {
        await lockPayments(tx, [subject]);
        await writeObserved(tx, origin, payments);
        await orphanUnobserved(tx, origin, payments);
        await tellUnreported(tx, origin, payments);
      });
    }
    const outcome = next(driver, (await settle(subject)) ?? before, pollSeconds);
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
  const open = await db.query(`select 1 from payment where order_number = $1 and status in ('SEEN', 'MINED') limit 1`, [
    orderNumber,
  ]);
  return open.length > 0;
}

/** A chain that is synced block by block is looked at here only when it expires. */
function next(driver: PaymentDriver, { status, createdAt, expiresAt }: TopUp, pollSeconds: number): Outcome {
  const ageSeconds = (Date.now() - createdAt.getTime()) / 1000;
  const restSeconds = Math.max(0, (expiresAt!.getTime() - Date.now()) / 1000);
  if (ageSeconds > DEPOSIT_ADDRESS_SECONDS || (driver.simulated && status === 'CONFIRMED')) return done();
  if (!driver.observe) return restSeconds > 0 ? nap(restSeconds) : done();
  if (status === 'CONFIRMING') return nap(pollSeconds);
  if (status === 'PENDING') return nap(Math.min(pollSeconds, restSeconds));
  return nap(Math.max(LATE_POLL_SECONDS, ageSeconds / 24));
}
