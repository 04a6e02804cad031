/**
 * Watches a top-up until its money is credited: once, whatever the driver repeats, since the transfer's external key
 * is the order number. An invoice that expires unpaid is watched on for a month, for no coin is to be lost.
 */
import { SYSTEM } from '../../entities/audit.ts';
import type { Database, Transaction } from '../../entities/database.ts';
import { columnsOf } from '../../entities/entity.ts';
import { available, BONUS, gateway, post } from '../../entities/ledger.ts';
import { TOP_UP_LIFECYCLE, TopUp, type TopUpStatus } from '../../entities/top-up.ts';
import { transition } from '../../entities/transition.ts';
import { RESUME_TASK } from '../servers/renew.ts';
import { retrySuspended } from '../servers/resume.ts';
import { done, hop, type LeasedTask, nap, type Outcome, type Process, Stale } from '../tasks.ts';
import type { PaymentDriver } from './drivers/driver.ts';

export const TOP_UP_PROCESS = 'top-up';
export const TOP_UP_LANE = 'payments';
/** How long an address is looked at after its invoice has expired. */
const WATCH_SECONDS = 30 * 24 * 3600;
/** How often, once it has expired. */
const LATE_POLL_SECONDS = 600;

interface Options {
  db: Database;
  driver: PaymentDriver;
  pollSeconds: number;
}

export function topUpProcess({ db, driver, pollSeconds }: Options): Process {
  const step = (run: (topUp: TopUp, task: LeasedTask) => Promise<Outcome>) => async (task: LeasedTask) => {
    const [topUp] = await db.query<TopUp>(`select ${columnsOf(TopUp)} from top_up where order_number = $1`, [
      task.subject,
    ]);
    return topUp && topUp.status !== 'CONFIRMED' ? run(topUp, task) : done();
  };
  const observe = (topUp: TopUp, task: LeasedTask) => driver.observe({ ...topUp, coin: topUp.crypto }, task.aborted);

  return {
    lane: TOP_UP_LANE,
    attemptsMax: Number.MAX_SAFE_INTEGER,
    backoffSeconds: (attempt) => Math.min(300, pollSeconds * 2 ** attempt),
    steps: {
      /** Waits for money to be seen. */
      watch: step(async (topUp, task) => {
        // A simulation pays every invoice by itself; who cancels one would not have paid.
        if (driver.simulated && topUp.status === 'CANCELLED') return done();
        const { receivedCrypto, confirmations, txIds } = await observe(topUp, task);
        if (receivedCrypto !== '0') {
          const late = topUp.status === 'PENDING' ? {} : { paymentException: 'LATE' as const };
          return hop('confirm', {
            commit: (tx) => move(tx, topUp, 'CONFIRMING', { receivedCrypto, confirmations, txIds, ...late }),
          });
        }
        const ageSeconds = (Date.now() - topUp.createdAt.getTime()) / 1000;
        if (topUp.status === 'PENDING' && topUp.expiresAt && topUp.expiresAt.getTime() <= Date.now()) {
          return nap(LATE_POLL_SECONDS, { commit: (tx) => move(tx, topUp, 'EXPIRED') });
        }
        if (ageSeconds > WATCH_SECONDS) return done();
        return nap(topUp.status === 'PENDING' ? pollSeconds : LATE_POLL_SECONDS);
      }),
      /** Waits for confirmations, and credits. */
      confirm: step(async (topUp, task) => {
        const { confirmations, receivedCrypto, txIds } = await observe(topUp, task);
        if (confirmations < topUp.confirmationsRequired) return nap(pollSeconds);
        return done({ commit: (tx) => credit(tx, topUp, { confirmations, receivedCrypto, txIds }, driver.name) });
      }),
    },
  };
}

async function credit(tx: Transaction, topUp: TopUp, seen: Partial<TopUp>, network: string) {
  const { accountId, orderNumber, amountMicros, bonusMicros } = topUp;
  await move(tx, topUp, 'CONFIRMED', { ...seen, creditedMicros: amountMicros + bonusMicros, confirmedAt: new Date() });
  const common = { credit: available(accountId), orderNumber };
  await post(tx, accountId, [
    {
      ...common,
      kind: 'topup',
      debit: gateway(network),
      amountMicros,
      externalKey: `topup:${orderNumber}`,
      description: `Top-up in ${topUp.crypto}`,
    },
    {
      ...common,
      kind: 'bonus',
      debit: BONUS,
      amountMicros: bonusMicros,
      externalKey: `bonus:${orderNumber}`,
      description: 'Bonus',
    },
  ]);
  await retrySuspended(tx, accountId, RESUME_TASK);
}

/**
 * @throws Stale if it is not what the step took it for: the money of one that was cancelled meanwhile came late, and is
 * to be recorded as such
 */
async function move(tx: Transaction, topUp: TopUp, to: TopUpStatus, set: Partial<TopUp> = {}) {
  const moved = await transition(tx, TOP_UP_LIFECYCLE, topUp.orderNumber, to, { actor: SYSTEM, set });
  if (moved?.previousStatus !== topUp.status) throw new Stale(`${topUp.orderNumber} could not become ${to}.`);
}
